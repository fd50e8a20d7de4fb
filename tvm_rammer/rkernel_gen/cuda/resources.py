"""Registers, shared memory and spills of many kernels, as ptxas reports them; kept in a cache on disk.

Each kernel is compiled as a launch of its own. A persistent kernel's registers are those of all its rTask functions
together; `nvcc.measure_resources` asks ptxas again for it.
"""

import functools
import os
import pathlib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import tvm
from tvm import tirx
from tvm.tirx.compilation_pipeline import register_tir_pipeline

from ... import debug, define_arithmetic, loads
from ...define_arithmetic import DefineArithmetic
from ...device import DeviceSpec
from ...errors import ToolError
from ...kernel import ScheduledKernel
from ...loads import overlapping
from ...nvcc import Resources, compile_cuda, nvcc_version, parse_reports
from ...nvcc.compile import FLAGS
from ...nvcc.kept import load_resources, save_resources
from ..analysis.structure import structural_key

KERNELS_PER_FILE = 16
"""nvcc takes a second to start, and a quarter of a second for each kernel."""

MOST_REGISTERS = 200
"""Registers of a thread at most, of the 255 that there are: a persistent kernel keeps the state of its rows beside what
an rTask needs, and ptxas keeps some values of one function through all others."""

FILE_LIMIT_S, KERNEL_LIMIT_S = 120.0, 30.0
"""A file that takes longer is compiled kernel by kernel; a kernel that takes longer is not compiled."""

ALONE = "rammer_cuda_alone"
"""The pipeline that compiles kernels as launches of their own; as in the persistent kernel, their loads overlap."""


def resources(
    kernels: Sequence[ScheduledKernel], device: DeviceSpec, *, compile_new: bool = True
) -> list[Resources | None]:
    """The resources of each kernel: from the cache, or from compiling all kernels that are not in it together.

    Parameters
    ----------
    kernels : sequence of ScheduledKernel
    device : DeviceSpec
        A GPU; only its `arch` matters.
    compile_new : bool
        False: only read the cache; the other kernels are None.

    Returns
    -------
    list of Resources or None
        None for each kernel where nvcc is missing, and for one that it cannot compile (RAMMER_DEBUG=1 names it).
    """
    version = nvcc_version()
    if version is None:
        return [None] * len(kernels)
    folder = debug.cache_folder() / "ptxas" / f"{version}-{_compiler_key()}" / device.arch
    keys = [f"{structural_key(kernel.func):016x}" for kernel in kernels]
    known = {key: found for key in set(keys) if (found := load_resources(folder, key)) is not None}
    new = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if key not in known}
    for key, found in _compile_all(new, device) if compile_new else ():
        known[key] = found
        save_resources(folder, key, found)
    return [known.get(key) for key in keys]


def without_spills(
    kernels: Mapping[str, Sequence[ScheduledKernel]], device: DeviceSpec, dropped: Counter[str]
) -> dict[str, tuple[ScheduledKernel, ...]]:
    """Record each kernel's registers, and drop those that spill or would in a persistent kernel.

    Where all kernels of a function do, those stay that spill least. Those that nvcc does not compile, or not in time,
    are dropped where it compiles another one.

    Parameters
    ----------
    kernels : mapping of str to sequence of ScheduledKernel
        The kernels of each function. They are compiled together; where nvcc is missing they are returned unchanged.
    device : DeviceSpec
    dropped : Counter
        Counts dropped kernels by reason.
    """
    measured = iter(resources([k for made in kernels.values() for k in made], device))
    kept: dict[str, tuple[ScheduledKernel, ...]] = {}
    for name, made in kernels.items():
        asked = [(kernel, next(measured)) for kernel in made]
        known = [(kernel, need) for kernel, need in asked if need is not None] or asked
        dropped["nvcc does not compile it"] += len(asked) - len(known)
        least = min((_too_much(need) for _, need in known if need), default=(0, 0))
        fit = [(kernel, need) for kernel, need in known if need is None or _too_much(need) <= least]
        dropped["spills registers"] += len(known) - len(fit)
        kept[name] = tuple(
            replace(kernel, spec=replace(kernel.spec, registers=need.registers)) if need else kernel
            for kernel, need in fit
        )
    return kept


def _too_much(need: Resources) -> tuple[int, int]:
    """Bytes that a kernel spills, and registers beyond those that it may have."""
    return need.spill_bytes, max(0, need.registers - MOST_REGISTERS)


def _compile_all(new: dict[str, ScheduledKernel], device: DeviceSpec) -> Iterator[tuple[str, Resources]]:
    """Compile files of some kernels in parallel, one for each core; yield results as they come."""
    names = list(new)
    batches = [names[i : i + KERNELS_PER_FILE] for i in range(0, len(names), KERNELS_PER_FILE)]
    # TVM's code generators run in this thread only; nvcc is another process.
    texts = [source_of([new[key] for key in batch], device) for batch in batches]
    missing: list[str] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        reports = pool.map(lambda text: _reports(text, device.arch, FILE_LIMIT_S), texts)
        for batch, report in zip(batches, reports, strict=True):
            for i, key in enumerate(batch):
                if f"k{i}_kernel" in report:
                    yield key, report[f"k{i}_kernel"]
                else:
                    missing.append(key)
    for key in missing:
        report = _reports(source_of([new[key]], device), device.arch, KERNEL_LIMIT_S)
        if "k0_kernel" in report:
            yield key, report["k0_kernel"]
        else:
            debug.say(1, f"{new[key].spec.name}: nvcc does not compile it for {device.arch} in time")


def _pipeline() -> tuple[tvm.transform.Pass, object, object]:
    lower, finish_host, finish_device = tirx.get_tir_pipeline("s_tir")
    return tvm.transform.Sequential([lower, DefineArithmetic("cuda")]), finish_host, overlapping(finish_device)


register_tir_pipeline(ALONE, _pipeline)


@functools.cache
def _compiler_key() -> str:
    """Results depend on the compiler's flags, and on the passes of `ALONE`: their code makes the text."""
    found = zlib.crc32(" ".join(FLAGS).encode())
    for package in (define_arithmetic, loads):
        for file in sorted(pathlib.Path(package.__path__[0]).glob("*.py")):
            found = zlib.crc32(file.read_bytes(), found)
    return f"{found:08x}"


def source_of(kernels: Sequence[ScheduledKernel], device: DeviceSpec) -> str:
    """CUDA text of several kernels, named k0_kernel, k1_kernel, ..."""
    functions = {f"k{i}": kernel.func.with_attr("global_symbol", f"k{i}") for i, kernel in enumerate(kernels)}
    built = tirx.build(tvm.IRModule(functions), target=tvm.target.Target(device.target_config()), pipeline=ALONE)
    return str(built.imports[0].inspect_source("cuda"))


def _reports(source: str, arch: str, time_limit_s: float) -> dict[str, Resources]:
    try:
        return parse_reports(compile_cuda(source, arch, time_limit_s=time_limit_s).report)
    except ToolError as error:
        debug.say(2, f"a file of kernels does not compile: {error}")
        return {}
