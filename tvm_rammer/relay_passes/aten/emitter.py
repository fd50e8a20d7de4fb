"""What converters of single operators share: values of earlier nodes, and new bindings."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tvm import relax

Convert = Callable[[Any], relax.Expr]
"""From an FX node to its value, as TVM's frontend has them."""


class Emitter:
    """Emits the operators of one import.

    Parameters
    ----------
    importer : BaseFXGraphImporter
        Has the values of earlier nodes (`env`) and the `block_builder`.
    """

    def __init__(self, importer: Any) -> None:
        self.importer = importer

    def value(self, arg: Any) -> Any:
        """An argument of a node: what its node became, or itself."""
        return self.importer._retrieve_args(arg)

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """Bind an expression to a new variable."""
        return self.importer.block_builder.emit(expr)

    @contextmanager
    def given(self, values: Mapping[Any, relax.Expr]) -> Iterator[None]:
        """Other values of earlier nodes, for as long as a converter of TVM's runs."""
        env = self.importer.env
        before = {node: env[node] for node in values}
        env.update(values)
        try:
            yield
        finally:
            env.update(before)

    def from_the_start(self, index: relax.Expr, size: int) -> relax.Expr:
        """Indices of an axis of which negative ones count from its end, as others."""
        dtype = str(index.ty.dtype)
        negative = self.emit(relax.op.less(index, relax.const(0, dtype)))
        moved = self.emit(relax.op.add(index, relax.const(size, dtype)))
        return self.emit(relax.op.where(negative, moved, index))


def dtype_by_torch(node: Any) -> str:
    """The element type of a node's result, as PyTorch knows it."""
    return str(node.meta["val"].dtype).removeprefix("torch.")
