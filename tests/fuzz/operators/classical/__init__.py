"""Operators of ai.onnx.ml on tensors of numbers: features, linear models, trees."""

from . import features, models

TABLE = features.TABLE | models.TABLE
