"""One conformance suite for all engines, against the real servers."""
