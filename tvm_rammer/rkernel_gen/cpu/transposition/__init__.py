"""Transpositions that make another axis the innermost one, and what is computed of them element by element.

`problem` recognises them, `rule` has the tilings, `code` the loops.
"""
