"""Tiny graphs and kernels, written in a line."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from tvm_rammer.device import PRESETS
from tvm_rammer.ir import Buffer, RGraph, RKernel, ROperator, RProgram
from tvm_rammer.wavefront import CostModel, LowerBound, PolicyOptions, lower_bound, schedule

DEVICE = PRESETS["cuda:h100"]
FREE = CostModel()
SYNC_COSTS = CostModel(launch_us=10.0, signal_us=1.0, wait_us=0.25)


def make_graph(reads: Mapping[str, str], nbytes: Mapping[str, int] | None = None) -> RGraph:
    """A graph of operators that each read the outputs of others, or the model's input `x`.

    `{"a": "", "b": "a"}` is a chain. Buffer `a.out` is what `a` writes; what nobody reads is an output.
    """
    position = {name: 1 + n for n, name in enumerate(reads)}
    read = {r for names in reads.values() for r in names.split()}
    buffers = [Buffer("x", (64,), "float32", "input")]
    for name in reads:
        kind = "intermediate" if name in read else "output"
        buffers.append(Buffer(f"{name}.out", ((nbytes or {}).get(name, 512),), "int8", kind))
    operators = [
        ROperator(name, f"f_{name}", tuple(position[r] for r in names.split()) or (0,), (position[name],))
        for name, names in reads.items()
    ]
    return RGraph("g", tuple(buffers), tuple(operators))


def make_kernels(**tilings: tuple[int, float] | list[tuple[int, float]]) -> dict[str, list[RKernel]]:
    """Candidates by operator, each (number of rTasks, time of one)."""
    return {
        f"f_{name}": [
            RKernel(f"k_{name}_{n}", f"f_{name}", rtasks, us)
            for n, (rtasks, us) in enumerate(given if isinstance(given, list) else [given])
        ]
        for name, given in tilings.items()
    }


def plan(
    reads: Mapping[str, str], *, veus: int, cost: CostModel = FREE, sync: str = "auto", policy: str = "wavefront",
    nbytes: Mapping[str, int] | None = None, **tilings: tuple[int, float] | list[tuple[int, float]],
) -> tuple[RProgram, ...]:  # fmt: skip
    """Schedule a graph; an operator without a tiling is one rTask of 1 us."""
    kernels = make_kernels(**{name: tilings.get(name, (1, 1.0)) for name in reads})
    return schedule(make_graph(reads, nbytes), kernels, DEVICE, veus=veus, policy=policy, sync=sync, cost=cost)


DIAMOND = {"a": "", "b": "a", "c": "a", "d": "b c"}
BRANCHES = {"a": "", "b": "a", "c": "a", "d": "a", "e": "b", "f": "c d", "g": "e f b", "h": "g"}


@dataclass(frozen=True)
class RandomCase:
    """A graph with everything that a plan of it needs."""

    reads: dict[str, str]
    tilings: dict[str, list[tuple[int, float]]]
    nbytes: dict[str, int]
    cost: CostModel
    veus: int

    def plan(self, policy: str, sync: str = "auto", options: PolicyOptions | None = None) -> tuple[RProgram, ...]:
        """Schedule it."""
        graph, kernels = make_graph(self.reads, self.nbytes), make_kernels(**self.tilings)
        return schedule(
            graph, kernels, DEVICE, veus=self.veus, policy=policy, sync=sync, cost=self.cost, options=options
        )

    def lower_bound(self) -> LowerBound:
        """Bound its makespan."""
        kernels = make_kernels(**self.tilings)
        return lower_bound(make_graph(self.reads, self.nbytes), kernels, DEVICE, veus=self.veus, cost=self.cost)


COSTS = [FREE, SYNC_COSTS, CostModel(launch_us=0.5, signal_us=1.0, wait_us=0.1, barrier_us=1.5)]


@st.composite
def random_cases(draw: st.DrawFn, most: int = 15) -> RandomCase:
    """Random graphs of at most 15 operators on 1 to 8 vEUs."""
    names = [f"o{n}" for n in range(draw(st.integers(1, most)))]
    reads, tilings = {}, {}
    for n, name in enumerate(names):
        before = draw(st.sets(st.sampled_from(names[:n]), max_size=3)) if n else set()
        reads[name] = " ".join(sorted(before))
        sizes = st.tuples(st.integers(1, 9), st.sampled_from([0.5, 1.0, 3.0]))
        tilings[name] = draw(st.lists(sizes, min_size=1, max_size=2))
    nbytes = {name: draw(st.sampled_from([1, 128, 300, 1024])) for name in names}
    return RandomCase(reads, tilings, nbytes, draw(st.sampled_from(COSTS)), draw(st.integers(1, 8)))


@st.composite
def random_plans(draw: st.DrawFn, sync: str = "auto") -> tuple[RProgram, ...]:
    """Plans of random graphs of at most 15 operators on 1 to 8 vEUs."""
    return draw(random_cases()).plan(draw(st.sampled_from(["wavefront", "sequential"])), sync)
