"""Find out whether a request leaves dimensions open, and make the modules of such a one."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..compilation.request import Request
from ..errors import ModelError
from ..ir import Length
from ..runtime.module import RammerModule
from ..saving.key import digests_of
from .combine import open_shapes
from .dimensions import OpenShapes, Shapes
from .signature import Signature, read_signature


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request for one model, with what is known of its shapes.

    Parameters
    ----------
    request : Request
    signature : Signature
    shapes : OpenShapes
    """

    request: Request
    signature: Signature
    shapes: OpenShapes


def open_request(request: Request) -> OpenRequest | None:
    """What a request says of its model's shapes; None where the model cannot be read without compiling it.

    Raises
    ------
    ShapeError
        The shapes that it gives do not fit the model.
    """
    model = _imported(request.models[0])
    signature = read_signature(model)
    if signature is None:
        return None
    shapes = open_shapes(signature.inputs, request.shapes[0])
    return OpenRequest(replace(request, models=(model,)), signature, shapes)


def _imported(model: Any) -> Any:
    """A file of torch.export as the Relax module that it becomes."""
    if not (isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".pt2")):
        return model
    from ..relay_passes import as_relax

    return as_relax(model)


class RequestMaker:
    """Makes the modules of a request for each set of shapes (`specialisations.Maker`).

    The model in memory is copied: what is compiled later is the model of now.

    Parameters
    ----------
    opened : OpenRequest
    build : callable
        Compiles a request, or takes its module from the cache.
    find : callable
        The module of a request from the cache, or None.
    """

    def __init__(
        self,
        opened: OpenRequest,
        build: Callable[[Request], RammerModule],
        find: Callable[[Request], RammerModule | None],
    ) -> None:
        model = _copied(opened.request.models[0])
        self._request = replace(opened.request, models=(model,), digests=opened.request.digests or digests_of((model,)))
        self._stamp = _stamp(model)
        self._open = opened.shapes
        self._build, self._find = build, find

    def cached(self, shapes: Shapes, length: Length | None = None) -> RammerModule | None:
        """What the cache of compiled models has for these shapes."""
        return self._find(replace(self._request, shapes=(shapes,), length=length))

    def compile(self, shapes: Shapes, length: Length | None = None) -> RammerModule:
        """A module of these shapes, or of any length, from the cache or compiled; raises what compiling raises."""
        self._check_unchanged()
        return self._build(replace(self._request, shapes=(shapes,), length=length))

    def stock(self) -> RammerModule:
        """A module of open shapes, in which stock TVM computes what depends on them."""
        self._check_unchanged()
        return self._build(replace(self._request, shapes=(self._open.extents(),), symbolic=True, explore=0))

    def _check_unchanged(self) -> None:
        """Refuse to compile another model under the name of the first one."""
        model = self._request.models[0]
        stamp = _stamp(model)
        if stamp != self._stamp:
            if digests_of((model,)) != self._request.digests or self._request.digests is None:
                raise ModelError(
                    f"{os.fspath(model)!r} has changed since it was read: its new shapes would be another model's; "
                    f"compile it again"
                )
            self._stamp = stamp


def _copied(model: Any) -> Any:
    if isinstance(model, str | os.PathLike):
        return model
    if hasattr(model, "CopyFrom"):
        copy = type(model)()
        copy.CopyFrom(model)
        return copy
    return model.clone()


def _stamp(model: Any) -> object:
    """What changes when a file is written; None for a model in memory, or a file that is gone."""
    if not isinstance(model, str | os.PathLike):
        return None
    try:
        about = os.stat(model)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
