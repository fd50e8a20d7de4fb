"""Put other ONNX nodes into the place of one.

element_types  ONNX's types of floating-point numbers
node_view      the node, and what is known of its inputs
emitter        the nodes that take its place, in the making
replace        the walk through a model that asks for them
"""

from .element_types import FLOATS, HALVES, largest
from .emitter import Emitter
from .node_view import Constants, NodeView, Types, attribute
from .replace import replace_nodes

__all__ = ["FLOATS", "HALVES", "Constants", "Emitter", "NodeView", "Types", "attribute", "largest", "replace_nodes"]
