"""What one operator alone reads, element by element, is computed where it is read."""

from collections import Counter
from collections.abc import Iterator

import tvm
from tvm import s_tir, sym, tirx
from tvm.error import InternalError
from tvm.s_tir.schedule import ScheduleError

from ...bindings import rewrite_prim_funcs
from ...module_pass import module_pass
from .nests import Nest, accesses, nest_of, statements_of


def InlineElements() -> tvm.transform.Pass:
    """Make the pass; it works on functions in blocks that nobody scheduled.

    A tensor stays where it is read by several operators, more often than it has elements, or by a reduction, and where
    its type is narrower than that of the arithmetic.
    """
    return _inline_elements


@module_pass("InlineElements")
def _inline_elements(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    return rewrite_prim_funcs(mod, _inlined)


def _inlined(func: tirx.PrimFunc) -> tirx.PrimFunc | None:
    """A function without the tensors that need not be in memory; None where it has none of these."""
    found = list(_read_once(func))
    if not found:
        return None
    try:
        schedule = s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")
    except InternalError:  # of an index to which an axis is added and taken away again: "Divide by zero"
        return None
    done = 0
    for nest in found:
        try:
            schedule.compute_inline(schedule.get_sblock(nest.name))
        except (InternalError, ScheduleError, ValueError):
            continue  # its result is written in an order of its own
        done += 1
    return func.with_body(schedule.mod["main"].body) if done else None


def _read_once(func: tirx.PrimFunc) -> Iterator[Nest]:
    """What computes a tensor of the function's own that one other nest reads, and not more often than it is long."""
    statements = statements_of(func)
    if len(statements) < 2:
        return
    own = set(func.body.block.alloc_buffers)
    nests = [nest_of(statement) for statement in statements]
    read, written = [], []
    for statement in statements:
        reads, writes = accesses(statement)
        read.append({buffer for buffer, _ in reads})
        written.append({buffer for buffer, _ in writes})
    readers, writers = (Counter(buffer for each in sets for buffer in each) for sets in (read, written))
    reader_of = {buffer: nest for nest, each in zip(nests, read, strict=True) if nest is not None for buffer in each}
    for number, nest in enumerate(nests):
        if nest is None:
            continue
        made = nest.store.buffer
        if made not in own or made not in reader_of or _is_narrow(nest):
            continue
        stays = read[number].isdisjoint(set[tirx.Var]().union(*written[number:]))
        if readers[made] == writers[made] == 1 and stays and _at_most(reader_of[made], nest):
            yield nest


def _is_narrow(nest: Nest) -> bool:
    """Whether numbers are rounded to its type in memory, and perhaps not between two operations."""
    kind = nest.store.value.ty.dtype
    return "float" in str(kind) and kind.bits < 32


def _at_most(reader: Nest, nest: Nest) -> bool:
    """Whether a nest computes at most as many elements as another one."""
    analyzer = sym.Analyzer()
    one, other = reader.elements, nest.elements
    return bool(analyzer.can_prove_equal(one, other)) or bool(analyzer.can_prove(one <= other))
