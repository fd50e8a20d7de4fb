"""Plans written by hand, and what a compilation record needs around them."""

from dataclasses import replace

from tvm_rammer.compilation.record import Compilation
from tvm_rammer.device import PRESETS
from tvm_rammer.ir import Buffer, Lane, RGraph, RKernel, ROperator, RProgram, Run, Signal, Wait

DEVICE = PRESETS["cuda:h200"]


def chain(name: str, names: list[str], rtasks: int, lanes: tuple[Lane, ...], events: int) -> RProgram:
    """A chain of operators, each of a function of its own, as a program with the given lanes."""
    buffers = [Buffer("x", (4,), "float32", "input")]
    buffers += [Buffer(f"{n}.out", (4,), "float32", "intermediate") for n in names[:-1]]
    buffers.append(Buffer("y", (4,), "float32", "output"))
    operators = tuple(ROperator(n, f"f_{n}", (i,), (i + 1,)) for i, n in enumerate(names))
    kernels = tuple(RKernel(f"f_{n}_rows_parts{rtasks}", f"f_{n}", rtasks, 1.0 + i % 3) for i, n in enumerate(names))
    return RProgram(name, RGraph(name, tuple(buffers), operators), kernels, lanes, events, {}, 0)


def handed_over(names: list[str], name: str = "region0_0") -> RProgram:
    """Two vEUs, each with half of the two rTasks of every operator; both wait for both before the next operator."""
    lanes: list[Lane] = []
    for v in range(2):
        instructions: list[Run | Signal | Wait] = []
        for o in range(len(names)):
            instructions += ([Wait(o - 1, 2)] if o else []) + [Run(o, v, 1), Signal(o)]
        lanes.append(tuple(instructions))
    return chain(name, names, 2, tuple(lanes), len(names))


def repeated(program: RProgram, steps: int) -> RProgram:
    """The same program as the step of a loop."""
    offsets = {b: 64 * b for b, buffer in enumerate(program.graph.buffers) if buffer.kind == "intermediate"}
    return replace(program, graph=replace(program.graph, steps=steps), offsets=offsets)


def record_of(*programs: RProgram, stock: tuple[tuple[str, str], ...] = ()) -> Compilation:
    """The record of a compilation that made these programs, a region each."""
    return Compilation(
        DEVICE,
        operators=sum(len(p.graph.operators) for p in programs),
        graphs=[p.graph for p in programs],
        kernels={k.function: (k,) for p in programs for k in p.kernels},
        programs=list(programs),
        programs_per_region=[1] * len(programs),
        stock_calls=list(stock),
    )
