"""A model whose sequences may have any length up to a bound, as loops that learn their number of steps when they run.

    rows     how an operator treats the rows of a sequence: each by itself, or not
    axes     where the rows of all values of a graph are
    cut      the graph as loops over rows, a few at a time, between its recurrent loops
    lengths  one model of some length becomes the model of all of them; what forbids it

A model goes in whose recurrent layers and loops have become Scans, for a length of `lengths.ROWS`; one comes out whose
Scans take one more input, how many rows there are (`../scan.py`). What computes each row by itself becomes a Scan, too,
over `ROWS` rows at a time: so all work ends with the last row.
"""
