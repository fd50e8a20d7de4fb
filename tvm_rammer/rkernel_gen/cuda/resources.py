"""Registers, shared memory and spills of many kernels: compiled together, in a few files, and remembered on disk.

What is reported is the kernel by itself, as a launch of its own. Within a persistent kernel its rTask function shares
the registers of the whole, which are measured once more when that is assembled (`persistent_codegen.cuda_resources`).
"""

import json
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import tvm
import tvm_ffi
from tvm import tirx

from ... import debug
from ...device import DeviceSpec
from ...errors import ToolError
from ...kernel import ScheduledKernel
from ...nvcc import Resources, compile_cuda, nvcc_version, parse_reports
from ...nvcc.compile import FLAGS

KERNELS_A_FILE = 16
"""nvcc takes a second to start, and then a quarter of a second a kernel."""

FILE_LIMIT_S, KERNEL_LIMIT_S = 120.0, 30.0
"""A file that takes longer is compiled kernel by kernel, and a kernel that takes longer is given up."""

_FLAGS_KEY = f"{zlib.crc32(' '.join(FLAGS).encode()):08x}"
"""Other flags, other code, other registers."""


def resources(
    kernels: Sequence[ScheduledKernel], device: DeviceSpec, *, compile_new: bool = True
) -> list[Resources | None]:
    """What each kernel needs, from the disk where it is known, else from one compile of all that are new.

    Parameters
    ----------
    kernels : sequence of ScheduledKernel
    device : DeviceSpec
        A GPU; only its `arch` matters.
    compile_new : bool
        False: only look at the disk, which takes no time; the others are None.

    Returns
    -------
    list of Resources or None
        None for all where nvcc is missing, and for a kernel that it cannot compile (RAMMER_DEBUG=1 names it).
    """
    version = nvcc_version()
    if version is None:
        return [None] * len(kernels)
    folder = debug.cache_folder() / "ptxas" / f"{version}-{_FLAGS_KEY}" / device.arch
    keys = [_key(kernel) for kernel in kernels]
    known = {key: found for key in set(keys) if (found := _load(folder, key)) is not None}
    new = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if key not in known}
    for key, found in _compile_all(new, device) if compile_new else ():
        known[key] = found
        _save(folder, key, found)
    return [known.get(key) for key in keys]


def without_spills(
    kernels: Mapping[str, Sequence[ScheduledKernel]], device: DeviceSpec, dropped: Counter[str]
) -> dict[str, tuple[ScheduledKernel, ...]]:
    """Tell each kernel its registers, and drop those that spill: a function keeps its least bad one if all do.

    Parameters
    ----------
    kernels : mapping of str to sequence of ScheduledKernel
        Of all functions: they are compiled together. Where nvcc is missing they stay as they are.
    device : DeviceSpec
    dropped : Counter
        What is dropped is counted here, by reason.
    """
    measured = iter(resources([k for made in kernels.values() for k in made], device))
    kept: dict[str, tuple[ScheduledKernel, ...]] = {}
    for name, made in kernels.items():
        known = [(kernel, next(measured)) for kernel in made]
        least = min((need.spill_bytes for _, need in known if need), default=0)
        fit = [(kernel, need) for kernel, need in known if need is None or need.spill_bytes <= least]
        dropped["spills registers"] += len(known) - len(fit)
        kept[name] = tuple(
            replace(kernel, spec=replace(kernel.spec, registers=need.registers)) if need else kernel
            for kernel, need in fit
        )
    return kept


def _key(kernel: ScheduledKernel) -> str:
    """Names a kernel's code, whatever its variables are called."""
    bare = kernel.func.without_attr("global_symbol")
    return f"{tvm_ffi.structural_hash(bare, map_free_vars=True) & (2**64 - 1):016x}"


def _compile_all(new: dict[str, ScheduledKernel], device: DeviceSpec) -> Iterator[tuple[str, Resources]]:
    """Compile in files of some kernels, as many at once as there are cores; yield what is known as soon as it is."""
    names = list(new)
    batches = [names[i : i + KERNELS_A_FILE] for i in range(0, len(names), KERNELS_A_FILE)]
    # TVM's code generators are not asked from several threads at once; nvcc is another process.
    texts = [_source([new[key] for key in batch], device) for batch in batches]
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
        report = _reports(_source([new[key]], device), device.arch, KERNEL_LIMIT_S)
        if "k0_kernel" in report:
            yield key, report["k0_kernel"]
        else:
            debug.say(1, f"{new[key].spec.name}: nvcc does not compile it for {device.arch} in time")


def _source(kernels: Sequence[ScheduledKernel], device: DeviceSpec) -> str:
    """CUDA text of several kernels, named k0_kernel, k1_kernel, ..."""
    functions = {f"k{i}": kernel.func.with_attr("global_symbol", f"k{i}") for i, kernel in enumerate(kernels)}
    built = tirx.build(tvm.IRModule(functions), target=tvm.target.Target(device.target_config()), pipeline="s_tir")
    return built.imports[0].inspect_source("cuda")


def _reports(source: str, arch: str, time_limit_s: float) -> dict[str, Resources]:
    try:
        return parse_reports(compile_cuda(source, arch, time_limit_s=time_limit_s).report)
    except ToolError as error:
        debug.say(2, f"a file of kernels does not compile: {error}")
        return {}


def _load(folder: Path, key: str) -> Resources | None:
    """Read one result; None where there is none, or where its file is no such result."""
    try:
        return Resources(**json.loads((folder / f"{key}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _save(folder: Path, key: str, found: Resources) -> None:
    """Write one result under another name first: who reads meanwhile sees all of it or nothing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder, suffix=".new")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(found), file)
        os.replace(path, folder / f"{key}.json")
    except OSError as error:
        debug.say(1, f"cannot keep what ptxas said in {folder}: {error}")
