"""Searches of a log with other words: nothing that somebody typed, and the same work for a server.

searches      all searches of a log, and those that are left out because it would not be safe
words         of plain words
paths         of requests over HTTP
statements    of SQL
bodies        of requests in JSON
pseudonyms    which word stands for which, and the key
"""
