"""Operations: one question in an engine's own words, of one or several statements.

text        the text of a method, with its marks and placeholders
http_text   how a text of HTTP is taken apart into requests
portable    a method that is a query of the algebra: what it asks, and what its answer has
paths       where the rows lie in a reply of JSON
draw        which rows an operation asks for, drawn from the corpus with the seed
model       an operation with its draws, and a method as the statements that answer one draw
keys        the keys of [operations.NAME] and what goes together in them
"""
