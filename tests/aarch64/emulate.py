"""Models compiled for AArch64 and run by an emulator of it: the code of programs and workers, without TVM."""

import os
import pathlib
import shutil
import subprocess
from collections.abc import Sequence

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.ir import Call, Constant, Tuple, TupleGetItem

from tvm_rammer import relay_passes
from tvm_rammer.compilation.launch import launch_regions
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import plan_regions
from tvm_rammer.compilation.stages import find_kernels
from tvm_rammer.compilation.target import resolve_device, tvm_target
from tvm_rammer.relay_passes.bindings import body_blocks, dtype_of, is_call, result_of, static_shape, tensor_fields

HERE = pathlib.Path(__file__).parent
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
GCC = shutil.which("aarch64-linux-gnu-gcc")
LIBRARIES = pathlib.Path("/usr/aarch64-linux-gnu")
"""Where Debian's cross compiler has the C library of the other processor."""

MISSING = [what for what, found in {
    "qemu-aarch64 (package qemu-user)": QEMU,
    "aarch64-linux-gnu-gcc (package gcc-aarch64-linux-gnu)": GCC,
    "its C library (package libc6-dev-arm64-cross)": (LIBRARIES / "include" / "stdio.h").exists(),
}.items() if not found]  # fmt: skip

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
"""Of DLPack, by NumPy's kind of type."""


def target(workers: int) -> tvm.target.Target:
    """An AArch64 of 2018 with that many cores."""
    config = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76", "num-cores": workers}
    return tvm.target.Target(config)


def run_emulated(
    model: onnx.ModelProto, inputs: Sequence[np.ndarray], folder: pathlib.Path, workers: int = 2, runs: int = 2
) -> list[np.ndarray]:
    """Compile a model for AArch64, and return the results of its last run there.

    Parameters
    ----------
    model : onnx.ModelProto
    inputs : sequence of numpy.ndarray
        In the model's order.
    folder : path
        Empty; takes the object files, the program and its data.
    workers : int
        vEUs, and threads.
    runs : int
        How often the functions are called in one process; results of a run before must not matter.
    """
    record = Compilation(resolve_device(target(workers)))
    module = plan_regions(find_kernels(relay_passes.load_model(model), record), record)
    launched = launch_regions(module, record)
    build(launched, record, folder)
    program = Program(launched["main"], inputs)
    (folder / "program.h").write_text(program.text(), encoding="utf-8")
    (folder / "initial").write_bytes(b"".join(array.tobytes() for array in program.buffers))
    command = [
        GCC,
        "-std=gnu11",
        "-O1",
        f"-DMOST_ARGUMENTS={program.most_arguments()}",
        f"-I{folder}",
        HERE / "harness.c",
    ]
    command += [*folder.glob("*.o"), "-o", folder / "harness", "-lpthread", "-ldl", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    command = [QEMU, "-L", LIBRARIES, folder / "harness", folder / "initial", folder / "results", str(runs)]
    environment = os.environ | {"TVM_NUM_THREADS": str(workers)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, f"exit status {done.returncode} {done.stderr}"
    return program.read(folder / "results")


def build(launched: tvm.IRModule, record: Compilation, folder: pathlib.Path) -> None:
    """Write the object files of a module."""
    lowered = relay_passes.finish(tvm_target(record.device))(launched)
    executable = tvm.compile(lowered, tvm_target(record.device), relax_pipeline=tvm.transform.Sequential([]))
    for number, module in enumerate(m for m in executable.mod.imports if m.kind == "llvm"):
        module.write_to_file(str(folder / f"{number}.o"))


class Program:
    """What TVM's virtual machine would do: calls of functions, and the buffers that they read and write.

    Parameters
    ----------
    main : relax.Function
        Calls of PrimFuncs only.
    inputs : sequence of numpy.ndarray
        What its parameters are.
    """

    def __init__(self, main: relax.Function, inputs: Sequence[np.ndarray]) -> None:
        self.buffers: list[np.ndarray] = []
        self.calls: list[tuple[str, list[int]]] = []
        self._of: dict[relax.Var, list[int]] = {}
        for param, value in zip(main.params, inputs, strict=True):
            self._of[param] = [self._add(np.asarray(value, order="C"))]
        for block in body_blocks(main):
            for binding in block.bindings:
                self._of[binding.var] = self._value(binding.value)
        self.results = self._value(result_of(main))

    def text(self) -> str:
        """The program as C."""
        names = sorted({name for name, _ in self.calls})
        declared = "".join(f"extern int __tvm_ffi_{n}(void *, const Any *, int32_t, Any *);\n" for n in names)
        buffers = "".join(f"  {_described(array)},\n" for array in self.buffers)
        calls = "".join(f'  {{"{n}", __tvm_ffi_{n}, {len(a)}, {{{_listed(a)}}}}},\n' for n, a in self.calls)
        return (
            f"{declared}static Buffer buffers[] = {{\n{buffers}}};\nstatic const Call calls[] = {{\n{calls}}};\n"
            f"static const int returned[] = {{{_listed(self.results)}}};\n"
        )

    def most_arguments(self) -> int:
        return max(len(arguments) for _, arguments in self.calls)

    def read(self, path: pathlib.Path) -> list[np.ndarray]:
        """The results that the harness wrote."""
        data, begin, results = path.read_bytes(), 0, []
        for array in (self.buffers[i] for i in self.results):
            flat = np.frombuffer(data, array.dtype, array.size, begin)
            results.append(flat.reshape(array.shape))
            begin += array.nbytes
        assert begin == len(data)
        return results

    def _add(self, array: np.ndarray) -> int:
        self.buffers.append(array)
        return len(self.buffers) - 1

    def _value(self, expr: relax.Expr) -> list[int]:
        """The buffers of an expression: those of all its fields."""
        match expr:
            case relax.Var():
                return self._of[expr]
            case Constant():
                return [self._add(expr.value.numpy())]
            case Tuple():
                return [i for field in expr.fields for i in self._value(field)]
            case TupleGetItem():
                return [self._value(expr.tuple_value)[expr.index]]
            case Call() if is_call(expr, ["relax.call_tir"]):
                types = tensor_fields(expr.ty_args[0])
                made = [self._add(np.zeros(static_shape(ty), dtype_of(ty))) for ty in types]
                self.calls.append((expr.args[0].name_hint, [*self._value(expr.args[1]), *made]))
                return made
        raise AssertionError(f"no buffers of {expr}")


def _described(array: np.ndarray) -> str:
    code, bits = _CODES[array.dtype.kind], 8 * array.dtype.itemsize
    return f"{{{code}, {bits}, {array.nbytes}, {array.ndim}, {{{_listed(array.shape) or 0}}}}}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
