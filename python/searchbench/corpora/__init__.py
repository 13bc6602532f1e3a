"""Corpora: where documents come from."""
