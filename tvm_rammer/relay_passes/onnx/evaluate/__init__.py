"""Values that depend on constants alone, by onnx's reference evaluator.

evaluator   a model or a node is evaluated; what the evaluator gets wrong is put right here
"""
