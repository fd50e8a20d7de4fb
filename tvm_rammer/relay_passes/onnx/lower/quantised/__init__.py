"""Integer products and quantised operators.

channels_last  layers with channels last, by those with channels second
linear         QuantizeLinear and DequantizeLinear in blocks, and of ONNX Runtime's domain
pairs          a layer between DequantizeLinear and QuantizeLinear is one quantised operator
operators      quantised operators, by others
values         what these are made of: products of bytes, or of floating-point numbers
"""
