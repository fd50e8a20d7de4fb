"""Passes on a Relax module of static shapes, a pass a file; `prepare` runs them in its order.

simplify_ops      cheaper operators for what TVM's ONNX frontend writes in a roundabout way
fold_batchnorm    batch normalisation into the convolution before it
pad_columns       constant matrices get whole vectors of columns
check_indices     run-time indices are clipped; a branch at the end reports those that were outside
fold_constants    all that depends on constants only is computed
drop_dead_blocks  what a fused function computes and nobody reads is dropped
"""
