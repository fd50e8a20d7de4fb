"""What ONNX Runtime's optimisers fuse, as other operators again.

operators   products with activations, weights of few bits
norms       of rows and of sums, by the mean square, before opset 17
attention   attention of numbers and of bytes, embeddings
withdrawn   operators that ONNX withdrew and ONNX Runtime has
"""
