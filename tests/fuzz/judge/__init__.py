"""What is right: two judges for ONNX (`onnx_judges`), TVM's plain pipeline for its own modules (`tvm_judge`)."""
