"""What ONNX Runtime's optimisers fuse, as other operators again.

operators   products with activations, weights of few bits
norms       of rows and of sums, by the mean square, before opset 17
attention   attention of numbers and of bytes, embeddings
grouped     attention of language models, whose queries share keys and values
rotary      positions as angles
diffusion   norms of groups, and gates, of diffusion models
early       operators that ONNX Runtime had before ONNX
withdrawn   operators that ONNX withdrew and ONNX Runtime has
"""
