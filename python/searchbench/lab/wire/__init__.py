"""The one wire boundary: prepared requests, the order they are sent in, the core."""
