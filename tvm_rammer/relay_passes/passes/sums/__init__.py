"""Sums of what stays stock TVM's on a CPU, such as products of as many rows as the data say.

TVM leaves such loops as they were written: an element at a time, with the sum innermost, which LLVM must not reorder.

tile       which sums are tiled: several rows at once, where they read the same numbers: these are read once
tile_code  the code of a tile
pack       constant matrices as tiles read them
vectorise  elements that follow one another as vectors, around which a sum goes
lanes      sums along what follows one another, in the lanes of a vector
"""
