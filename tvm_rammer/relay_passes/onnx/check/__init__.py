"""What ONNX does not allow is refused before anything believes it.

file    a file's nodes, before onnx's shape inference reads them
nodes   each node, once the shapes of what it reads are known: onnx's own inference, and ...
rules   ... what that lets pass
"""
