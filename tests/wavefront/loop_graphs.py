"""Random loops: small graphs of several steps with carried values, and kernels whose rTasks touch parts of buffers."""

import random

from tvm_rammer.ir import Buffer, Footprint, Place, RGraph, RKernel, ROperator, TripCount

PARTS, STEPS = 4, 6
"""Parts of a slot that different rTasks may touch, and steps: few, for the judge looks at each of them."""


class LoopGraph:
    """A random graph in the making.

    Values are `PARTS` parts of some bytes of int8. There are an array that each step reads a slot of, up to two states,
    each handed on in a ring or through a result of all steps, and operators that read any of these. How many steps
    there are may be an input: slots that go backward, and rings, are counted from the last step then. Or a step
    may say whether there is another one.
    """

    def __init__(self, rng: random.Random, part: int, steps: int, counted: bool, conditional: bool = False) -> None:
        self.rng, self.size, self.steps, self.counted = rng, PARTS * part, steps, counted
        self.conditional = conditional
        self.buffers: list[Buffer] = []
        self.operators: list[ROperator] = []
        self.kernels: dict[str, list[RKernel]] = {}

    def make(self) -> tuple[RGraph, dict[str, list[RKernel]]]:
        """A graph, and one or two kernels for each function."""
        rng = self.rng
        xs = self._add("xs", "input", self.steps * self.size)
        start = self._add("start", rng.choice(["input", "constant"]), self.size)
        backward = rng.random() < 0.3
        x = self._add("x", "view", self.size, self._slot(xs, 0, backward))
        first: dict[int, int] = {}
        carried = []
        for n in range(rng.randint(1, 2)):
            ring = rng.random() < 0.5
            base = self._add(
                f"y{n}",
                rng.choice(["intermediate", "output"]) if ring else "output",
                self.size * (2 if ring else self.steps),
            )
            before = Place(base, 0, self.size, 0, 2, self.counted) if ring else self._slot(base, -1, backward)
            after = Place(base, 0, self.size, 1, 2, self.counted) if ring else self._slot(base, 0, backward)
            first[self._add(f"before{n}", "view", self.size, before)] = start
            carried.append(self._add(f"after{n}", "view", self.size, after))
        results = [*(self._add(f"t{n}", "intermediate", self.size) for n in range(rng.randint(0, 3))), *carried]
        readable = [x, *first]
        for n, result in enumerate(results):
            inputs = tuple(rng.sample(readable, min(len(readable), rng.randint(1, 3))))
            inputs = inputs if n or first.keys() & set(inputs) else (*inputs, next(iter(first)))
            at_first = tuple(first.get(b, b) for b in inputs)
            self.operators.append(
                ROperator(f"o{n}", f"f{n}", inputs, (result,), at_first if at_first != inputs else ())
            )
            self.kernels[f"f{n}"] = [self._kernel(n, k, len(inputs)) for k in range(rng.randint(1, 2))]
            readable.append(result)
        condition = self._condition(rng.choice(results)) if self.conditional else None
        read = {b for op in self.operators for b in op.inputs}
        # What nobody reads would have no place in the graph of a region.
        kept = [op for op in self.operators if op.outputs[0] in read or op.outputs[0] in (*carried, condition)]
        count = None
        if self.counted:
            count = TripCount(len(self.buffers))
            self.buffers.append(Buffer("count", (1,), "int32", "input"))
        graph = RGraph("loop", tuple(self.buffers), tuple(kept), self.steps, count, condition)
        return graph.subgraph(range(len(kept)), "loop"), self.kernels

    def _condition(self, of: int) -> int:
        """An operator that computes it, somewhere behind what it reads."""
        base = len(self.buffers)
        self.buffers.append(Buffer("conditions", (self.steps,), "bool", "output"))
        self.buffers.append(Buffer("goes_on", (1,), "bool", "view", Place(base, 0, 1)))
        made = next(n for n, op in enumerate(self.operators) if of in op.outputs)
        at = self.rng.randint(made + 1, len(self.operators))
        self.operators.insert(at, ROperator("decide", "decide", (of,), (base + 1,)))
        self.kernels["decide"] = [RKernel("decide", "decide", 1, 1.0, footprints=(None, None))]
        return base + 1

    def _add(self, name: str, kind, nbytes: int, place: Place | None = None) -> int:
        self.buffers.append(Buffer(name, (nbytes,), "int8", kind, place))
        return len(self.buffers) - 1

    def _slot(self, base: int, ahead: int, backward: bool) -> Place:
        if backward:
            return Place(base, (self.steps - 1) * self.size, -self.size, ahead, from_end=self.counted)
        return Place(base, 0, self.size, ahead)

    def _kernel(self, n: int, k: int, num_inputs: int) -> RKernel:
        count = self.rng.choice([1, 2, 4])
        part = Footprint((count,), (0,), ((self.size // count,),), (self.size // count,))
        reads = [self.rng.choice([part, part, None]) for _ in range(num_inputs)]
        return RKernel(f"k{n}_{k}", f"f{n}", count, self.rng.choice([0.5, 1.0, 3.0]) / count, footprints=(*reads, part))


def loop_graph(
    rng: random.Random, part: int = 1, *, steps: int = STEPS, counted: bool = False, conditional: bool = False
) -> tuple[RGraph, dict[str, list[RKernel]]]:
    """A random loop and its kernels; a part of a value has so many bytes. How many steps a run has may be an input, or
    what a step says."""
    return LoopGraph(rng, part, steps, counted, conditional).make()
