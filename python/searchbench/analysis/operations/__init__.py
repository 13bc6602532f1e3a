"""Methods that answer the same operation: their curves over the rows asked for, where they cross.

results   the curve of each method with its failures, what a row costs, and all that follows
crossing  where two methods are equally fast, with its interval
rows      whether methods return the same rows, and the first that differ
"""
