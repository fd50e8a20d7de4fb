"""The text of an exported project: what is generated of it, around the files that are the same for every model."""

import functools
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..device import DeviceSpec
from ..gpu_bundle.onsite.plan import Plan, View
from ..ir import ITEM_BYTES, VIEW_ALIGNMENT, RProgram, Wait
from ..nvcc.compile import FLAGS
from ..persistent_codegen.cuda.state import FINISHED, FIRST_EVENT, LINE
from ..runtime.tensors import TensorSpec
from .storage import Place, Storage

_FILES = pathlib.Path(__file__).parent / "files"
_NAME = re.compile(r"\b(?:model(?=_|\.(?:h|cu|weights)\b)|MODEL(?=_))")
"""What stands in the fixed files for the name of the model."""

_INCLUDES = """#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "model.h"

// ---- The kernels, as TVM generated them --------------------------------------------------------------------------
"""


@dataclass(frozen=True, slots=True)
class Project:
    """What the text of a project is made of.

    Parameters
    ----------
    name : str
        What its identifiers begin with, in lower case.
    device : DeviceSpec
        For which the model was planned.
    kernels : str
        CUDA text.
    plan : Plan
    storage : Storage
    tables : mapping of int to (str, numpy.ndarray)
        Constants that are tables of a plan: an identifier, and int32 values.
    programs : mapping of int to RProgram
        By the constant that the blocks of its persistent kernel count in; all are zero at first.
    inputs, outputs : tuple of TensorSpec
    weights_checksum : int
        Adler-32.
    tolerance : float
        Largest error over the largest magnitude of what is expected that `main` calls right.
    """

    name: str
    device: DeviceSpec
    kernels: str
    plan: Plan
    storage: Storage
    tables: Mapping[int, tuple[str, np.ndarray]]
    programs: Mapping[int, RProgram]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    weights_checksum: int
    tolerance: float


def project_files(project: Project) -> dict[str, str]:
    """The text files of a project, by name."""
    listed = {
        "NAME": project.name,
        "DEVICE": project.device.name,
        "ARCHITECTURE": project.device.arch.removeprefix("sm_"),
        "FLAGS": " ".join(_cmake_flags()),
        "NUM_INPUTS": str(len(project.inputs)),
        "NUM_OUTPUTS": str(len(project.outputs)),
        "ALIGNMENT": str(VIEW_ALIGNMENT),
        "TENSORS": "\n".join(_described(project)),
        "TOLERANCE": repr(project.tolerance),
    }

    def filled(text: str) -> str:
        text = re.sub(r"@([A-Z_]+)@", lambda found: listed[found[1]], text)
        return _NAME.sub(lambda found: project.name if found[0].islower() else project.name.upper(), text)

    parts = (_fixed("structures.cuh"), *_data(project), _fixed("host.cuh"))
    return {
        f"{project.name}.h": filled(_fixed("model.h")),
        f"{project.name}.cu": filled(_INCLUDES) + project.kernels + "\n" + filled("".join(parts)),
        "main.cpp": filled(_fixed("main.cpp")),
        "CMakeLists.txt": filled(_fixed("CMakeLists.txt")),
    }


@functools.cache
def _fixed(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _cmake_flags() -> list[str]:
    """The flags with which the kernels were compiled for the plan, but those that ask for a cubin and a report.

    Nor does nvcc say that `longlong4` and `double4` have had other names since CUDA 13.
    """
    flags = [flag.removesuffix(",-v") for flag in FLAGS if flag != "-cubin"]
    at = flags.index("-diag-suppress")
    return [*flags[:at], f'"SHELL:{flags[at]} {flags[at + 1]},1444"', *flags[at + 2 :]]


def _described(project: Project) -> Iterable[str]:
    for kind, specs in (("input", project.inputs), ("output", project.outputs)):
        for number, spec in enumerate(specs):
            yield f" *   {kind} {number}: {_text(spec.name)}, {spec.dtype}{list(spec.shape)}"


def _data(project: Project) -> Iterable[str]:
    """Tables, launches and tensors."""
    storage, plan = project.storage, project.plan
    for identifier, values in project.tables.values():
        yield f"const int32_t {identifier}[] = {{{_numbers(values)}}};\n\n"
    yield (
        f"const size_t kMemoryBytes = {storage.nbytes}, kWeightsBytes = {storage.weights_bytes};\n"
        f"const uint32_t kWeightsChecksum = {project.weights_checksum}u;\n"
    )
    tables = [
        f"{{{identifier}, sizeof {identifier}, {storage.places[buffer].offset}}}"
        for buffer, (identifier, _) in project.tables.items()
    ]
    programs = [_program(program, plan.buffers[i].nbytes, storage.places[i]) for i, program in project.programs.items()]
    views = [view for launch in plan.launches for view in launch.arguments]
    launches, first = [], 0
    for launch in plan.launches:
        grid, block = (", ".join(map(str, extents)) for extents in (launch.grid, launch.block))
        launches.append(
            f'{{(const void*){launch.kernel}, "{launch.kernel}", dim3({grid}), dim3({block}), {launch.shared_bytes}, '
            f"{str(launch.cooperative).lower()}, {first}, {len(launch.arguments)}}}"
        )
        first += len(launch.arguments)
    copies = [f"{{{_address(plan.outputs[i], storage)}, {i}}}" for i in storage.copies]
    yield _vector("Table", "kTables", tables)
    yield f"const int kFinished = {FINISHED}, kFirstEvent = {FIRST_EVENT}, kLine = {LINE};\n"
    yield _vector("Program", "kPrograms", programs)
    yield _vector("Address", "kAddresses", [_address(view, storage) for view in views])
    yield _vector("Launch", "kLaunches", launches)
    yield _vector("Copy", "kCopies", copies)
    yield f"const int kMostArguments = {max(len(launch.arguments) for launch in plan.launches)};\n\n"
    yield from _shapes(project)
    yield "}  // namespace\n\n"
    yield _tensors("model_inputs", "kInputShape", project.inputs)
    yield _tensors("model_outputs", "kOutputShape", project.outputs)
    yield "namespace {\n\n"


def _program(program: RProgram, nbytes: int, counters: Place) -> str:
    waits = [
        f"{{{veu}, {row}, {wait.event}, {wait.arrivals}, {wait.back}}}"
        for veu, lane in enumerate(program.lanes)
        for row, wait in enumerate(lane)
        if isinstance(wait, Wait)
    ]
    shape = f"{counters.offset}, {nbytes}, {len(program.lanes)}, {program.steps}"
    return f'{{"{program.name}", {shape}, {{{", ".join(waits)}}}}}'


def _address(view: View, storage: Storage) -> str:
    place: Place = storage.places[view.buffer]
    return f"{{{place.where}, {place.offset + view.offset}}}"


def _vector(kind: str, name: str, items: Sequence[str]) -> str:
    rows = "".join(f"    {item},\n" for item in items)
    return f"const std::vector<{kind}> {name} = {{\n{rows}}};\n"


def _shapes(project: Project) -> Iterable[str]:
    for name, specs in (("kInputShape", project.inputs), ("kOutputShape", project.outputs)):
        for number, spec in enumerate(specs):
            yield f"const long long {name}{number}[] = {{{', '.join(map(str, spec.shape)) or 1}}};\n"


def _tensors(name: str, shape: str, specs: Sequence[TensorSpec]) -> str:
    """The array of tensors; one more than there are, for C++ has no empty arrays."""
    rows = "".join(
        f'    {{"{_text(spec.name)}", "{spec.dtype}", {nbytes_of(spec)}, {len(spec.shape)}, {shape}{number}}},\n'
        for number, spec in enumerate(specs)
    )
    return f"const model_tensor {name}[] = {{\n{rows}    {{nullptr, nullptr, 0, 0, nullptr}},\n}};\n\n"


def nbytes_of(spec: TensorSpec) -> int:
    """Size of a tensor of static shape."""
    return int(np.prod(spec.shape, dtype=np.int64)) * ITEM_BYTES[spec.dtype]


def _numbers(values: np.ndarray) -> str:
    flat = [str(value) for value in values.reshape(-1).tolist()]
    return ",\n    ".join(", ".join(flat[i : i + 16]) for i in range(0, len(flat), 16))


def _text(name: str) -> str:
    """A tensor's name as C has it in a string or a comment."""
    return re.sub(r'[^ -~]|["\\*?]', "_", name)
