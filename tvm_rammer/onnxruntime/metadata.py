"""What an ONNX file says of itself, as `onnxruntime.ModelMetadata`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """Names, descriptions and properties of a model; texts are empty where the file has none.

    Parameters
    ----------
    producer_name, graph_name, domain, description, graph_description : str
    version : int
        Of the model, as who made it counts.
    custom_metadata_map : mapping of str to str
        Its `metadata_props`.
    """

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: Mapping[str, str]


def read_metadata(model: Any) -> ModelMetadata:
    """The metadata of a model.

    Parameters
    ----------
    model : path of an .onnx file or onnx.ModelProto

    Raises
    ------
    ModelError
        It is none of these, as a saved model, or the file is no longer there.
    """
    import onnx

    if not isinstance(model, onnx.ModelProto):
        try:
            model = onnx.load(model, load_external_data=False)
        except Exception as error:  # all that readers of files raise
            raise ModelError(
                f"{_told(model)} has no metadata: it is no ONNX model, or no longer there; give the session the ONNX "
                "file, or read them from it before"
            ) from error
    graph = model.graph
    return ModelMetadata(
        model.producer_name, graph.name, model.domain, model.doc_string, graph.doc_string, model.model_version,
        {prop.key: prop.value for prop in model.metadata_props},
    )  # fmt: skip


def _told(model: Any) -> str:
    return repr(os.fspath(model)) if isinstance(model, str | os.PathLike) else f"a {type(model).__name__}"
