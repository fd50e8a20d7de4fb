"""Cases from seeds: ONNX `graphs`, hostile `values`, damaged `files`, `scripts` of TVM."""
