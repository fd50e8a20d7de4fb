"""What ONNX Runtime's optimisers fuse, as other operators again.

operators   products with activations, norms, weights of few bits
attention   attention of numbers and of bytes, embeddings
"""
