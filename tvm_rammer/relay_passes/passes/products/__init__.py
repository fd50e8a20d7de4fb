"""Products in the form that kernels take.

widen_halves  of half precision on a CPU: in float32
pad_columns   with constant matrices whose columns are no whole vectors, on a CPU
crop_convolutions  whose results a slice drops: with less padding
merge_convolutions  of one image: in one
float_bytes   of bytes on a GPU: in float32
"""
