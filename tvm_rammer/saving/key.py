"""Names a compilation by all that its result depends on."""

import functools
import hashlib
import importlib.metadata
import os
import pathlib
import platform
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from .. import debug
from ..compilation.request import Request
from ..device.host import cpu_flags
from ..pass_context import pass_settings
from .file import FORMAT, versions

_PACKAGES = ("numpy", "onnx", "apache-tvm-ffi", "xgboost", "torch")
"""What takes part in a compilation besides TVM."""

_EXTERNAL = b"\x0a\x08location"
"""How a tensor with external data names its file, as a protocol buffer."""

_CHUNK = 1 << 22


class NoKeyError(Exception):
    """The result depends on something that has no name; the message says on what."""


def request_key(request: Request) -> str:
    """A digest of a request and of what it is compiled by.

    Of the environment variables `RAMMER_DUMP` forbids to skip a compilation, `RAMMER_WINOGRAD` is a part of it,
    `TVM_NUM_THREADS` and its like are in the device, and the others change no code.

    Raises
    ------
    NoKeyError
        The request cannot be named, or a compilation has effects of its own: somebody watches it.
    OSError
        A file cannot be read.
    """
    _check(request)
    found = hashlib.sha256()
    for part in (*_compiler(), *_how(request)):
        found.update(repr(part).encode() + b"\0")
    digests = request.digests or tuple(map(model_digest, request.models))
    for digest, shapes in zip(digests, request.shapes, strict=True):
        found.update(repr(_plain(shapes)).encode() + b"\0" + digest)
    if request.tuning_logs is not None:
        found.update(_folder(pathlib.Path(request.tuning_logs)))
    return found.hexdigest()[:40]


def _check(request: Request) -> None:
    if request.explore:
        raise NoKeyError("it explores, which goes on while it runs")
    if request.device.kind != "cpu":
        raise NoKeyError(f"it is for {request.device.name}")
    if request.options is not None and request.options.clock is not None:
        raise NoKeyError("its policy looks at a clock")
    if os.environ.get("RAMMER_DUMP"):
        raise NoKeyError("RAMMER_DUMP wants pictures of the compilation")
    registered = sys.modules.get("tvm_rammer.rkernel_gen.registered")
    if registered is not None and registered.any_registered():
        raise NoKeyError("kernels are registered")
    tvm = sys.modules.get("tvm")
    if tvm is not None and tvm.transform.PassContext.current().instruments:
        raise NoKeyError("instruments watch the passes")


def _compiler() -> Iterator[object]:
    """This package, TVM, and how TVM is set."""
    yield FORMAT, versions(), [(name, _version(name)) for name in _PACKAGES], platform.python_version()
    yield _source()
    tvm = sys.modules.get("tvm")
    if tvm is not None:
        context, plain = tvm.transform.PassContext.current(), tvm.transform.PassContext()
        if pass_settings(context) != pass_settings(plain):
            yield pass_settings(context)


@functools.cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def _source() -> str:
    """A digest of the names, sizes and times of this package's files: one that is edited is another compiler."""
    root, found = pathlib.Path(__file__).parents[1], hashlib.sha256()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            about = os.stat(os.path.join(folder, name))
            found.update(repr((os.path.relpath(folder, root), name, about.st_size, about.st_mtime_ns)).encode())
    return found.hexdigest()


def _how(request: Request) -> Iterator[object]:
    yield request.device, sorted(cpu_flags()), debug.winograd()
    yield request.joined, request.shares, request.policy, request.sync, request.options, request.loops, request.roll
    yield request.data_loops, request.symbolic
    yield request.length


def _plain(shapes: Any) -> object:
    """Shapes in an order that does not depend on how they were given."""
    if shapes is None:
        return None
    try:
        return sorted(
            (str(name), size if isinstance(size, int) else tuple(e if isinstance(e, str) else int(e) for e in size))
            for name, size in shapes.items()
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise NoKeyError(f"its shapes cannot be understood: {error}") from error


def model_digest(model: Any) -> bytes:
    """A digest of a model with its weights.

    Raises
    ------
    NoKeyError
        It has no bytes that name it.
    OSError
        A file cannot be read.
    """
    if isinstance(model, str | os.PathLike):
        path = pathlib.Path(model)
        return _file(path) if path.suffix == ".pt2" else _onnx_file(path)
    kind = type(model)
    if kind.__name__ == "ModelProto" and kind.__module__.partition(".")[0].startswith("onnx"):
        return _onnx_model(model)
    if kind.__name__ == "IRModule" and kind.__module__.partition(".")[0] == "tvm":
        import tvm

        return hashlib.sha256(b"relax" + tvm.ir.save_json(model).encode()).digest()
    raise NoKeyError(f"a {kind.__module__}.{kind.__qualname__} has no bytes that name it")


def digests_of(models: Sequence[Any]) -> tuple[bytes, ...] | None:
    """The digests of models; None where one has none."""
    try:
        return tuple(map(model_digest, models))
    except (NoKeyError, OSError):
        return None


def _onnx_model(model: Any) -> bytes:
    try:
        data: bytes = model.SerializeToString(deterministic=True)
    except Exception as error:  # protocol buffers end at 2 GB
        raise NoKeyError(f"the model cannot be written: {error}") from error
    if _EXTERNAL in data:
        raise NoKeyError("the model in memory has external data")
    return hashlib.sha256(b"onnx" + data).digest()


def _onnx_file(path: pathlib.Path) -> bytes:
    """The digest of a file, and of the files with external data that it names."""
    if not path.is_file():
        raise NoKeyError(f"{os.fspath(path)!r} is no file")
    data = path.read_bytes()
    found = hashlib.sha256(b"onnx" + data)
    if _EXTERNAL in data:
        import onnx
        from onnx.external_data_helper import _get_all_tensors, uses_external_data

        try:
            model = onnx.ModelProto.FromString(data)
        except Exception as error:
            raise NoKeyError(f"{os.fspath(path)!r} is no ONNX model") from error
        places = {
            entry.value
            for tensor in _get_all_tensors(model)
            if uses_external_data(tensor)
            for entry in tensor.external_data
            if entry.key == "location"
        }
        for place in sorted(places):
            found.update(place.encode() + b"\0" + _file(path.parent / place))
    return found.digest()


def _folder(folder: pathlib.Path) -> bytes:
    """The digest of all files below a folder."""
    if not folder.is_dir():
        raise NoKeyError(f"{os.fspath(folder)!r} is no folder")
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(os.fspath(path.relative_to(folder)).encode() + b"\0" + _file(path))
    return found.digest()


def _file(path: pathlib.Path) -> bytes:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.digest()
