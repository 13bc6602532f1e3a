"""One trial: its samples as arrays, its audit, its figures."""
