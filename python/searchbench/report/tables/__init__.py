"""The tables of a page."""
