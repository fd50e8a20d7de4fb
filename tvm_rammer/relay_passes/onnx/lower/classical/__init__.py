"""Operators of ai.onnx.ml that are arithmetic on tensors: what scikit-learn, LightGBM and XGBoost export.

    features  columns: scaled, normalised, chosen, joined
    linear    linear models
    ensemble  the attributes of trees -> tables of their nodes
    trees     ensembles of trees, walked one level at a time
    scores    sums -> scores and labels

Where ONNX Runtime and ONNX's reference evaluator do not agree what an operator means, it is refused.
"""

from .features import FEATURES
from .linear import LINEAR
from .trees import TREES

ML = "ai.onnx.ml"
"""The domain of all of them."""

CLASSICAL = {(ML, kind): lower for kind, lower in {**FEATURES, **LINEAR, **TREES}.items()}
