"""Logs counted by the executors of Spark: as many machines as there are, the same answer.

session   a context of Spark for one call, whose own words go to a file
reading   the driver: pieces shared out, counts fetched and added up
executor  what runs in the executors: pieces counted, counts merged

Only ``session`` and ``reading`` import pyspark, and only when they are called: it is an extra.
"""
