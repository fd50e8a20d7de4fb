"""Read a program that `torch.export.save` wrote."""

import os
import warnings
from typing import Any

from ...errors import MissingToolError, ModelError, first_line

SUFFIX = ".pt2"


def is_program_file(model: object) -> bool:
    """Whether a model is the path of such a file."""
    return isinstance(model, str | os.PathLike) and os.fspath(model).endswith(SUFFIX)


def read_program(path: str | os.PathLike[str]) -> Any:
    """Read a `.pt2` file.

    Returns
    -------
    torch.export.ExportedProgram

    Raises
    ------
    MissingToolError
        PyTorch is not installed.
    ModelError
        The file cannot be read, or holds no program.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingToolError(
            f"{os.fspath(path)!r} is a torch.export program, and PyTorch is not installed; pip install torch==2.13.0"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own
            return torch.export.load(os.fspath(path))
    except Exception as error:
        raise ModelError(
            f"{os.fspath(path)!r} cannot be read as a torch.export program: {first_line(error)}; "
            "write it by torch.export.save, with this version of PyTorch"
        ) from error
