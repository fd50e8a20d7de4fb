"""What all tests share."""

import tvm_rammer  # before TVM: it lets TVM's thread pool have all cores

assert tvm_rammer.__version__
