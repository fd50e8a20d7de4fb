"""Products in the form that a CPU's kernels take.

widen_halves  of half precision: in float32
pad_columns   with constant matrices whose columns are no whole vectors
"""
