"""Passes on a Relax module of static shapes, a pass a file; `prepare` runs them in its order.

simplify_ops      operators of TVM's ONNX frontend become cheaper ones
fold_batchnorm    batch normalisation into the convolution before it
products          those of half precision in float32; constant matrices are padded to full vectors of columns
legalization      operators become functions, some in other ways than TVM's
indices           run-time indices are clipped or end the call; a branch at the end reports those that were outside
sums              on a CPU sums of what is left to stock TVM are in registers: `finish` runs it, last of all
serial_loops      on a CPU what TVM writes by hand starts no threads
fold_constants    what depends on constants only is evaluated
bound_chains      fusion puts few transcendental functions into one another
claim_reads       blocks name all that they read of a tensor that is given twice
exact_simplification   what TVM's simplifier gets wrong, in other words
drop_dead_blocks  results that nothing reads leave fused functions
"""
