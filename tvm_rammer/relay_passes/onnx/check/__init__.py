"""What ONNX does not allow is refused before anything believes it, and what no operator of ours is.

file        a file's nodes, before onnx's shape inference reads them
nodes       each node, once the shapes of what it reads are known: onnx's own inference, and ...
rules       ... what that lets pass
inference   onnx's shape inference, asked in a way that it survives
operators   what neither TVM's frontend has nor a converter of ours
types       element types that TVM does not compute in, and sizes that cannot be addressed
names       nodes and values by name, for messages
"""
