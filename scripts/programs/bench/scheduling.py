"""Time the scheduler on graphs like ResNeXt-101 (64x4d), of some hundred to some thousand operators.

Each row is a process of its own, so that its peak memory is its own. Seconds are processor time, not wall-clock
time. `schedule s` holds a verification and a simulation, too: nothing is planned without them. Needs
no TVM.
"""

import argparse
import multiprocessing
import resource
import sys
import time

from tvm_rammer.device import PRESETS
from tvm_rammer.ir import Buffer, RGraph, RKernel, ROperator
from tvm_rammer.wavefront import POLICIES, CostModel, lower_bound, schedule, simulate, verify

STAGES = ((3, 256, 56), (4, 512, 28), (23, 1024, 14), (3, 2048, 7))
"""Blocks, channels at their end, and height of the image: of the four stages of ResNeXt-101."""

BRANCHES = 64
GFLOPS = 50.0
"""What one vEU does, so that rTasks of this table take some microseconds."""


class Net:
    """A graph in the making, with two or three tilings for each kind of operator."""

    def __init__(self) -> None:
        self.buffers = [Buffer("x", (1, 64, 56, 56), "float32", "input")]
        self.operators: list[ROperator] = []
        self.kernels: dict[str, list[RKernel]] = {}

    def add(self, kind: str, inputs: tuple[int, ...], channels: int, size: int, flops: float) -> int:
        """Add an operator whose output has `channels` planes of `size` x `size`; return the output."""
        function = f"{kind}_{channels}_{size}_{len(inputs)}"
        if function not in self.kernels:
            self.kernels[function] = [
                RKernel(f"{function}_{n}", function, n, 0.5 + 1.1 ** (n.bit_length()) * flops / n / (GFLOPS * 1e3))
                for n in sorted({1, max(1, channels * size // 128), max(1, channels * size * size // 512)})
            ]
        output = len(self.buffers)
        self.buffers.append(Buffer(f"b{output}", (1, channels, size, size), "float32", "intermediate"))
        self.operators.append(ROperator(f"{kind}{output}", function, inputs, (output,)))
        return output


def resnext(limit: int) -> tuple[RGraph, dict[str, list[RKernel]]]:
    """The blocks of ResNeXt-101 with each branch its own convolutions, up to some `limit` operators."""
    net, before = Net(), 0
    for blocks, channels, size in STAGES:
        for _ in range(blocks):
            if len(net.operators) < limit:
                before = _block(net, before, channels, size)
    return RGraph("resnext", tuple(net.buffers), tuple(net.operators)), net.kernels


def _block(net: Net, before: int, channels: int, size: int) -> int:
    """64 branches of a 1x1 and a 3x3 convolution, then a 1x1 over all of them and the sum with the shortcut."""
    width, pixels = channels // BRANCHES, size * size
    in_channels = net.buffers[before].shape[1]
    ends = []
    for _ in range(BRANCHES):
        narrow = net.add("reduce", (before,), width, size, 2.0 * in_channels * width * pixels)
        ends.append(net.add("conv", (narrow,), width, size, 18.0 * width * width * pixels))
    wide = net.add("expand", tuple(ends), channels, size, 2.0 * channels * channels * pixels)
    shortcut = (
        before
        if in_channels == channels
        else net.add("project", (before,), channels, size, 2.0 * in_channels * channels * pixels)
    )
    return net.add("add", (wide, shortcut), channels, size, float(channels * pixels))


def measure(limit: int, veus: int, policy: str) -> list[str]:
    """One row of the table."""
    graph, kernels = resnext(limit)
    device = PRESETS["cuda:h200"]
    start = time.process_time()
    programs = schedule(graph, kernels, device, veus=veus, policy=policy)
    scheduled = time.process_time() - start
    start = time.process_time()
    for program in programs:
        verify(program, device=device)
    verified = time.process_time() - start
    start = time.process_time()
    for program in programs:
        simulate(program, CostModel.of(device))
    simulated = time.process_time() - start
    rtasks = sum(kernel.num_rtasks for program in programs for kernel in program.kernels)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    makespan = sum(program.makespan_us for program in programs)
    waits = sum(program.waits() for program in programs)
    figures = (len(graph.operators), veus, rtasks, f"{scheduled:.2f}", f"{verified:.2f}", f"{simulated:.2f}")
    bound = lower_bound(graph, kernels, device, veus=veus)
    return [*map(str, figures), f"{peak:.0f}", str(waits), f"{makespan:.0f}", f"{100 * bound.gap(programs):.0f}"]


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", default="500,1000,2000,4400", metavar="A,B")
    parser.add_argument("--veus", default="132,264", metavar="A,B")
    parser.add_argument("--policy", default="wavefront", choices=[*POLICIES])
    arguments = parser.parse_args()
    print("| operators | vEUs | rTasks | schedule s | verify s | simulate s | peak MB | waits | makespan us | gap % |")
    print("|---:" * 10 + "|", flush=True)
    context = multiprocessing.get_context("spawn")
    for limit in map(int, arguments.operators.split(",")):
        for veus in map(int, arguments.veus.split(",")):
            with context.Pool(1) as pool:
                print("| " + " | ".join(pool.apply(measure, (limit, veus, arguments.policy))) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
