"""Single operators to measure.

plain   one node each, of float32
bytes   as ONNX Runtime's quantiser writes them
chosen  on as many rows, or images, as the data choose
"""

from .bytes import BYTES_OPERATORS, BytesOperator
from .chosen import CHOSEN_OPERATORS, ChosenOperator
from .plain import OPERATORS, Operator

__all__ = ["BYTES_OPERATORS", "CHOSEN_OPERATORS", "OPERATORS", "BytesOperator", "ChosenOperator", "Operator"]
