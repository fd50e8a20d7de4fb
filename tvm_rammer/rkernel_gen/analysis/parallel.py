"""The parallel loop of a function that is scheduled for a CPU."""

from tvm import tirx


def parallel_extent(func: tirx.PrimFunc) -> int | None:
    """The extent of a function's one outermost parallel loop; None where it has none."""
    body = func.body
    while True:
        if isinstance(body, tirx.For):
            if body.kind == tirx.ForKind.PARALLEL:
                return int(body.extent)
            if int(body.extent) != 1:
                return None
        inner = body.block.body if hasattr(body, "block") else getattr(body, "body", None)
        if inner is None:
            return None
        body = inner
