"""Transpositions that make another axis the innermost one: `rule` has the tilings, `code` the loops."""
