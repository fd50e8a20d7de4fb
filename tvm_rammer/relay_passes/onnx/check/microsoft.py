"""Which inputs the operators of ONNX Runtime need, of which onnx has no definitions."""

_BY_INPUTS = {
    (0,): "FastGelu Gelu Inverse MultiHeadAttention NhwcMaxPool QuickGelu Trilu",
    (0, 1): "Attention BiasGelu BiasSplitGelu DequantizeLinear ExpandDims FusedConv FusedGemm FusedMatMul GatherND "
    "GridSample LayerNormalization MatMulInteger16 NhwcConv NhwcFusedConv Pad QuantizeLinear "
    "SimplifiedLayerNormalization TransposeMatMul",
    (0, 1, 2): "BiasAdd DynamicQuantizeMatMul GatherBlockQuantized GroupNorm GroupNormalization MatMulNBits "
    "QLinearConcat SkipLayerNormalization SkipSimplifiedLayerNormalization",
    (0, 1, 2, 3): "MatMulIntegerToFloat RotaryEmbedding SkipGroupNorm",
    (0, 1, 2, 3, 4): "QAttention QLinearGlobalAveragePool",
    (0, 1, 2, 3, 4, 5): "QGemm",
    (0, 1, 2, 3, 4, 5, 6, 7): "QLinearConv",
    (0, 1, 2, 3, 4, 5, 6, 7, 8): "QLinearWhere",
    (0, 1, 2, 8, 9, 10, 11): "DynamicQuantizeLSTM",
    (0, 1, 3): "QLinearAveragePool QLinearLeakyRelu QLinearSigmoid",
    (0, 1, 3, 4): "QLinearSoftmax",
    (0, 1, 3, 4, 6): "QLinearAdd QLinearMul",
    (0, 2, 3, 5, 6): "EmbedLayerNormalization",
    (0, 5, 6): "GroupQueryAttention",
}

NEEDED: dict[str, tuple[int, ...]] = {kind: inputs for inputs, kinds in _BY_INPUTS.items() for kind in kinds.split()}
"""The positions of the inputs that must be given, by the operator's name."""
