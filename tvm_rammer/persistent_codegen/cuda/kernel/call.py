"""What a row runs: the branch of its call signature, and the rTask function with its pointers."""

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr
from tvm.tirx.script import builder as T

from ...arrays import item_bytes, scalar_of
from ...calls import CallSignature, pointer
from ...layout import FIRST_EXTERNAL, KEPT
from .. import sync
from ..rows import MARKS
from ..rtask import RTASK_BARRIER
from .body import Body, Row, bind


def choose(
    body: Body,
    signatures: Sequence[CallSignature],
    base: int,
    what: Expr,
    row: Row,
    rtasks: tuple[Expr, Expr, Expr],
    k: tirx.Var | None,
    begin: Callable[[], None],
) -> None:
    """Run what a row asks for: find the call signature by a binary search, so that hundreds cost eight comparisons.

    Parameters
    ----------
    body : Body
    signatures : sequence of CallSignature
        Those from number `base` on.
    base : int
    what : Expr
        The row's word that says which (rows.py).
    row : Row
    rtasks : tuple of Expr
        The first rTask, how many, and the step from one to the next.
    k : tirx.Var or None
        The number of the step, in a program of several.
    begin : callable
        Emits what comes once all is decoded, before the first rTask.
    """
    if len(signatures) == 1:
        _run(body, signatures[0], row, rtasks, k, begin)
        return
    half = len(signatures) // 2
    with T.If(what < MARKS * (base + half)):
        with T.Then():
            choose(body, signatures[:half], base, what, row, rtasks, k, begin)
        with T.Else():
            choose(body, signatures[half:], base + half, what, row, rtasks, k, begin)


def _run(
    body: Body,
    signature: CallSignature,
    row: Row,
    rtasks: tuple[Expr, Expr, Expr],
    k: tirx.Var | None,
    begin: Callable[[], None],
) -> None:
    function = signature.function
    start, count, step = rtasks

    def argument(i: int) -> Expr:
        return bind(f"argument{i}", row.word(body.form.first_argument + i))

    pointers = [_pointer(body, signature, i, argument, k) for i in range(len(function.dtypes))]
    numbers = [argument(len(pointers) + n) for n in range(len(function.numbers))]
    scratch = [
        _scratch_pointer(body, dtype, offset)
        for (_, dtype), (_, offset) in zip(function.scratch, function.scratch_offsets(), strict=True)
    ]

    def loop() -> None:
        thread = bind("thread", sync.thread(body.tid, function.threads)) if body.many else body.tid
        with T.serial(0, count, annotations={"disable_unroll": True}) as i:
            T.evaluate(body.callees[function.name](*pointers, *scratch, start + i * step, thread, *numbers))
            if scratch:  # the next rTask uses the same arena
                with T.If(i + 1 < count), T.Then():
                    T.evaluate(sync.rtask_barrier(RTASK_BARRIER, function.threads))

    begin()
    if function.threads == body.threads:
        loop()
    else:
        with T.If(body.tid < function.threads), T.Then():
            loop()


def _scratch_pointer(body: Body, dtype: str, offset: int) -> Expr:
    """A pointer into the arena; where there is no array of its vectors, to as many scalars.

    TVM wants one element type a variable, and makes it that of vectors where all accesses are alike.
    """
    if dtype in body.arena:
        return T.address_of(body.arena[dtype][offset // item_bytes(dtype)])
    scalar = scalar_of(dtype)
    lanes = item_bytes(dtype) // item_bytes(scalar)
    return T.address_of(body.arena[scalar][tirx.Ramp(offset // item_bytes(scalar), 1, lanes)])


def _pointer(body: Body, signature: CallSignature, i: int, argument: Callable[[int], Expr], k: tirx.Var | None) -> Expr:
    """A pointer that a function is called with."""
    segments, dtype = signature.segments[i], signature.function.dtypes[i]
    offset = signature.offsets[i]
    word: Expr | int = argument(i) if segments[0] < FIRST_EXTERNAL or len(segments) > 1 else 0
    shift: Expr | int = 0 if offset is None else argument(offset)
    if k is not None and (stride := signature.strides[i]) is not None:
        slot = k + argument(stride + body.width)
        if body.run_steps is not None:
            slot = slot + argument(stride + 3 * body.width) * (body.steps - body.run_steps)
        slot = slot & argument(stride + 2 * body.width)
        if segments[0] >= FIRST_EXTERNAL:
            shift = shift + slot * argument(stride)
        else:
            word = word + slot * argument(stride)

    def element(segment: int, index: Expr | int) -> Expr:
        return T.address_of(body.views[segment, dtype][index])

    found = pointer(segments, word, element, sync.select, shift)
    return found if KEPT in segments else sync.opaque(found)
