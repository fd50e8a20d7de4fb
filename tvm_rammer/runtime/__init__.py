"""A compiled model at work.

module       RammerModule: call it, bind it to arrays
compiled     what can be asked of it: report, pictures, code, files
tensors      what goes in and comes out
bound        called with arrays of the caller, again and again
pool         the size of TVM's thread pool, for stock calls
report       what the compilation did, as figures and as text
profiler     what each kernel took in real runs
explore, alternatives, explore_log   the first calls try plans of nearly equal predicted time
contexts     what one call changes
tvm_runtime  TVM's runtime without its compiler
"""
