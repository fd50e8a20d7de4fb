"""Models to measure: those of Rammer's evaluation in the paper's form and in today's, and others of their kind.

models        all of them by name
light         the light models of the onnx package, with random weights
streaming/    recurrent models that are called step by step
onnx_tools/   building ONNX graphs, and giving them weights
"""
