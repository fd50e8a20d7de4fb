"""Recurrence that a file spells out step by step, as a Scan again.

    steps    the graph: which nodes do the same, and which values are parts of an array
    walk     which node of a step does in the next step what another one does in this
    cycle    which of these make a recurrence, and which of them a step begins with
    check    from which step to which all of them do the same, and what each reads
    body     the Scan in the place of these steps
    order    the graph with such Scans in it
    whole    what puts the parts of an array side by side again is the array
    roll_up  these, for one recurrence after the other

    scans    of any Scan, of a file, too:
    gemms    its Gemms as products and sums
    gates    parts of a product as blocks of its columns
    ahead    products that wait for no step before, for all steps at once, ahead of it

Nodes that make no step equal to the others stay as they are: the first step often has no product with the state.
"""
