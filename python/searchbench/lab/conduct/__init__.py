"""Conducting trials: phases in their order, what trials share, totals."""
