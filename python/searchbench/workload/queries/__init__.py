"""Queries: what is asked. The algebra, sets of queries, and the order they are asked in."""
