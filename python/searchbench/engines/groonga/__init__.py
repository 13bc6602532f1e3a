"""Groonga and Droonga."""
