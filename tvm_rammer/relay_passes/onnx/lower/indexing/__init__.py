"""Operators that choose elements, and that put them somewhere.

choose   chosen, moved or made by constant indices and masks: OneHot, Tile, Compress
scatter  put into places: ScatterElements, ScatterND, MaxUnpool
slices   assignments to slices that are computed, by a choice
"""
