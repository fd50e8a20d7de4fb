"""A plan on the GPU: its memory, its kernels, and the work that one run is."""

from array import array
from ctypes import c_void_p
from pathlib import Path

from ...errors import ResidencyError, ToolError
from .cuda import Cuda
from .edges import dependences
from .hang import check_hangs
from .launcher import Launcher, Work
from .plan import Plan, PlanLaunch

_NAN_BYTE = 0xFF
"""Four of these bytes are a NaN, so that a read before a write shows in the result."""


class Session:
    """Loads a plan. Its memory stays until the process ends.

    Parameters
    ----------
    folder : pathlib.Path
        The bundle.
    plan : Plan
    cuda : Cuda
    launcher : Launcher

    Attributes
    ----------
    work : Work
        One run, launch by launch.
    kernels : dict of str to dict
        What each kernel uses (`Cuda.resources`).

    Raises
    ------
    ToolError
        No cubin fits this GPU, or CUDA refuses something.
    ResidencyError
        The blocks of a cooperative launch do not all fit on this GPU at once: they would wait for ever.
    """

    def __init__(self, folder: Path, plan: Plan, cuda: Cuda, launcher: Launcher) -> None:
        self.plan, self._cuda, self._launcher = plan, cuda, launcher
        device = cuda.describe()
        module = cuda.load_module(folder / choose_cubin(plan, str(device["architecture"])))
        self._addresses = [cuda.allocate(b.nbytes) for b in plan.buffers]
        for buffer, address in zip(plan.buffers, self._addresses, strict=True):
            if buffer.file:
                cuda.upload(address, (folder / buffer.file).read_bytes())
        self.kernels: dict[str, dict[str, int]] = {}
        launches: list[tuple[PlanLaunch, c_void_p, list[int]]] = []
        for launch in plan.launches:
            function = cuda.kernel(module, launch.kernel, launch.shared_bytes)
            threads = launch.block[0] * launch.block[1] * launch.block[2]
            uses = cuda.resources(function, threads, launch.shared_bytes)
            self.kernels[launch.kernel] = uses
            blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
            if launch.cooperative and uses["resident_blocks"] * int(str(device["multiprocessors"])) < blocks:
                raise ResidencyError(
                    f"{launch.kernel} has {blocks} blocks that must all run at once, but this GPU holds "
                    f"{uses['resident_blocks']} on each of {device['multiprocessors']} multiprocessors; "
                    "build the bundle for this GPU (gpu_bundle --target)"
                )
            launches.append((launch, function, [self._addresses[v.buffer] + v.offset for v in launch.arguments]))
        self._launches = launches
        self.work = Work(launches)

    @property
    def is_cooperative(self) -> bool:
        """Whether blocks of a launch wait for one another."""
        return any(launch.cooperative for launch in self.plan.launches)

    def graph(self) -> Work:
        """Capture one run into a CUDA graph."""
        return self._captured(self._launches, 1)

    def graph_of_one(self, number: int, repeats: int) -> Work:
        """Make a CUDA graph of one launch of a run, so many times, one after another."""
        return self._captured(self._launches[number : number + 1], repeats)

    def _captured(self, launches: list[tuple[PlanLaunch, c_void_p, list[int]]], repeats: int) -> Work:
        work = Work(launches)
        self._cuda.begin_capture(self._launcher.stream)
        try:
            self._launcher.run(work, repeats)
        finally:
            work.record.graph = self._cuda.end_capture(self._launcher.stream)
        return work

    def graph_with_edges(self) -> Work:
        """Make a CUDA graph of one run, in which a launch waits only for those that it depends on."""
        graph = self._cuda.new_graph()
        nodes: list[c_void_p] = []
        for number, before in enumerate(dependences(self.plan)):
            launch, function, _ = self._launches[number]
            shape = (*launch.grid, *launch.block, launch.shared_bytes)
            parameters = self.work.parameters(number)
            nodes.append(self._cuda.add_kernel(graph, [nodes[n] for n in before], function, shape, parameters))
        return Work(self._launches, self._cuda.instantiate(graph))

    def check_hangs(self) -> None:
        """Make sure that no watchdog has ended a kernel.

        Raises
        ------
        HangError
            One has.
        """
        self._cuda.synchronize()
        for launch in self.plan.launches:
            if (view := launch.report) is not None:
                words = array("i")
                words.frombytes(self._cuda.download(self._addresses[view.buffer] + view.offset, view.nbytes))
                check_hangs(launch.kernel, words)

    def poison(self) -> None:
        """Fill the memory that the kernels write with NaNs."""
        for buffer, address in zip(self.plan.buffers, self._addresses, strict=True):
            if buffer.kind == "memory":
                self._cuda.fill(address, buffer.nbytes, _NAN_BYTE)
        self._cuda.synchronize()

    def outputs(self) -> list["array[float]"]:
        """Copy the outputs back."""
        self._cuda.synchronize()
        found = []
        for view in self.plan.outputs:
            values = array("f")
            values.frombytes(self._cuda.download(self._addresses[view.buffer] + view.offset, view.nbytes))
            found.append(values)
        return found


def choose_cubin(plan: Plan, architecture: str) -> str:
    """Choose the newest cubin that runs on an architecture: the same major number, and no larger a minor one.

    Raises
    ------
    ToolError
        There is none.
    """
    fitting = [a for a in plan.cubins if a[:-1] == architecture[:-1] and a[-1] <= architecture[-1]]
    if not fitting:
        raise ToolError(
            f"this GPU is {architecture}, and the bundle has kernels for {', '.join(sorted(plan.cubins))} only; "
            "build the bundle for it"
        )
    return plan.cubins[max(fitting)]
