"""The greatest rate that keeps a promise, as an interval."""
