"""Intervals and tests, with the source of each formula."""
