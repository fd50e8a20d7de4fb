"""What an ONNX file says of itself, as `onnxruntime.ModelMetadata`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError
from ..onnx_metadata import onnx_metadata
from ..runtime.module import RammerModule


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
        It is none of these, or the file is no longer there.
    """
    import onnx

    if not isinstance(model, onnx.ModelProto):
        try:
            model = onnx.load(model, load_external_data=False)
        except Exception as error:  # all that readers of files raise
            raise no_metadata(model, "it is no ONNX file, or no longer there") from error
    return ModelMetadata(**onnx_metadata(model))


def saved_metadata(module: RammerModule, path: Any) -> ModelMetadata:
    """The metadata of the ONNX file that a saved model was compiled from.

    Parameters
    ----------
    module : RammerModule
        Of the saved model.
    path : path
        Where it was saved, for the message.

    Raises
    ------
    ModelError
        It was compiled from something else than one ONNX model.
    """
    if module.compilation.metadata is None:
        raise no_metadata(path, "it was not compiled from one ONNX model")
    return ModelMetadata(**module.compilation.metadata)


def no_metadata(model: Any, reason: str) -> ModelError:
    """The error of a model that says nothing of itself."""
    told = repr(os.fspath(model)) if isinstance(model, str | os.PathLike) else f"a {type(model).__name__}"
    return ModelError(f"{told} has no metadata: {reason}; give the session the ONNX file, or read them from it before")
