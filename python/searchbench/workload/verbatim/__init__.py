"""Requests as they are sent to an endpoint that runs already."""
