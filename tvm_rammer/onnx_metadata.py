"""What an ONNX file says of itself (names, descriptions, properties), from the file to the record of a compilation.

It travels as an attribute of the Relax module. Nothing is imported here: reading it needs no compiler.
"""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tvm

_ATTRIBUTE = "rammer.onnx_metadata"


def onnx_metadata(model: Any) -> dict[str, Any]:
    """The metadata of an `onnx.ModelProto`, by the names that `onnxruntime.ModelMetadata` gives them."""
    return {
        "producer_name": model.producer_name,
        "graph_name": model.graph.name,
        "domain": model.domain,
        "description": model.doc_string,
        "graph_description": model.graph.doc_string,
        "version": model.model_version,
        "custom_metadata_map": {prop.key: prop.value for prop in model.metadata_props},
    }


def attach_metadata(mod: "tvm.IRModule", metadata: dict[str, Any]) -> "tvm.IRModule":
    """A module that carries the metadata of the file that it was imported from."""
    return mod.with_attr(_ATTRIBUTE, json.dumps(metadata))


def take_metadata(mod: "tvm.IRModule") -> tuple["tvm.IRModule", dict[str, Any] | None]:
    """A module without the metadata that it carries, and these; None where it was no ONNX file."""
    if not mod.attrs or _ATTRIBUTE not in mod.attrs:
        return mod, None
    return mod.without_attr(_ATTRIBUTE), json.loads(str(mod.attrs[_ATTRIBUTE]))
