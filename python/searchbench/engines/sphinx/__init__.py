"""Sphinx over SphinxQL and its native API, and Manticore."""
