"""The tensors that go into a compiled model and come out of it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm_ffi

from ..errors import ModelError, first_line
from ..ir import ALIGNMENT, OUTPUT_NAMES

if TYPE_CHECKING:
    import tvm


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and element type of an input or an output; an extent that nobody knows before a run is -1."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def tensor_specs(mod: "tvm.IRModule", prefix: str = "") -> tuple[TensorSpec, ...]:
    """The inputs of a loaded module, `prefix` before their names."""
    return tuple(
        TensorSpec(prefix + param.name, _extents(param.ty), str(param.ty.dtype)) for param in mod["main"].params
    )


def output_specs(mod: "tvm.IRModule", prefix: str = "") -> tuple[TensorSpec, ...]:
    """The outputs of a loaded module, tuples within tuples one after another, `prefix` before their names.

    Those of an ONNX model have its names, others are called `output_0`, `output_1` and so on.
    """
    from tvm import relax

    def leaves(ty: Any) -> list[Any]:
        return [leaf for field in ty.fields for leaf in leaves(field)] if isinstance(ty, relax.TupleType) else [ty]

    main = mod["main"]
    types = leaves(main.ret_ty)
    given = main.attrs.get(OUTPUT_NAMES) if main.attrs else None
    names = list(map(str, given or ()))
    if len(names) != len(types):
        names = [f"output_{number}" for number in range(len(types))]
    return tuple(TensorSpec(prefix + name, _extents(ty), str(ty.dtype)) for name, ty in zip(names, types, strict=True))


def _extents(ty: Any) -> tuple[int, ...]:
    """The shape of a Relax tensor type, with -1 for what is not static."""
    from tvm import relax, tirx

    if not isinstance(ty.shape, relax.ShapeExpr):
        return (-1,) * max(0, int(ty.ndim))
    return tuple(int(d) if isinstance(d, tirx.IntImm) else -1 for d in ty.shape)


def random_inputs(specs: Sequence[TensorSpec], seed: int) -> list[np.ndarray]:
    """Make seeded inputs: normal floats, integers 0 and 1, random truth values."""
    rng = np.random.default_rng(seed)
    made = []
    for spec in specs:
        shape = [max(0, extent) for extent in spec.shape]  # TVM leaves extents of 0 open
        if spec.dtype == "bool":
            made.append(rng.integers(0, 2, shape).astype(bool))
        elif "int" in spec.dtype:
            made.append(rng.integers(0, 2, shape).astype(spec.dtype))
        else:
            made.append(rng.standard_normal(shape).astype(spec.dtype))
    return made


def input_values(specs: Sequence[TensorSpec], given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A value for each input, in their order: what was given, else seeded random numbers.

    Raises
    ------
    ModelError
        The model has no such input, or it takes another shape or type.
    """
    if unknown := given.keys() - {spec.name for spec in specs}:
        names = ", ".join(repr(spec.name) for spec in specs)
        raise ModelError(f"the model has no input {', '.join(map(repr, sorted(unknown)))}; its inputs are {names}")
    values = {spec.name: array for spec, array in zip(specs, random_inputs(specs, 0), strict=True)} | dict(given)
    for spec in specs:
        check_input(values[spec.name], spec)
    return values


def as_array(value: Any, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """What was given for an input as an array, without a copy where that can be.

    Numbers of Python and lists of them get the input's type, unless that is of another kind: 0.5 is no integer.

    Raises
    ------
    ModelError
        It is none, as a list of rows of different lengths, or NumPy cannot read it, as a tensor that has a gradient.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value
    try:
        by_dlpack = not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__")
        array = np.from_dlpack(value) if by_dlpack else np.asarray(value)
        if _has_no_type(value) and hasattr(np, spec.dtype) and np.can_cast(array.dtype, spec.dtype, "same_kind"):
            array = np.asarray(value, spec.dtype)
    except Exception as error:  # whatever the value's own methods raise
        raise ModelError(f"input {spec.name!r} cannot be read as an array: {first_line(error)}; give one") from error
    if array.dtype.hasobject:
        raise ModelError(
            f"input {spec.name!r} is a {type(value).__name__} that holds other things than numbers; "
            f"give an array of {spec.dtype}"
        )
    return array


def _has_no_type(value: Any) -> bool:
    return isinstance(value, int | float | list | tuple) and not isinstance(value, np.generic)


def to_tensor(value: Any, spec: TensorSpec, device: "tvm.runtime.Device") -> Any:
    """What a model takes as an input, on its device; raises a ModelError where `value` is something else."""
    import tvm

    if not isinstance(value, tvm.runtime.Tensor):
        # On the CPU through NumPy: TVM takes only memory that is aligned to 64 bytes.
        value = tvm.runtime.from_dlpack(value) if _is_elsewhere(value) else as_array(value, spec)
    check_input(value, spec)
    if isinstance(value, np.ndarray):
        return tvm.runtime.tensor(
            np.asarray(value, order="C"), device
        )  # np.ascontiguousarray would add an axis to none
    return value if value.device == device else value.copyto(device)


def on_host(value: Any, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """As `as_array`; what is in another memory is copied."""
    if not _is_elsewhere(value):
        return as_array(value, spec)
    copied: np.ndarray[Any, Any] = to_numpy(tvm_ffi.from_dlpack(value))
    return copied


def _is_elsewhere(value: Any) -> bool:
    """Whether a value is a tensor of some library in another memory than the CPU's."""
    try:
        return hasattr(value, "__dlpack__") and value.__dlpack_device__()[0] != tvm_ffi.DLDeviceType.kDLCPU
    except Exception:  # it has no memory at all, or is a class: `as_array` says so
        return False


def check_input(value: Any, spec: TensorSpec, what: str = "input") -> None:
    """Raise a ModelError where a value has another shape or type than the model's input, or its output."""
    shape = tuple(int(s) for s in value.shape)
    if (shape != spec.shape and not _fits(shape, spec.shape)) or value.dtype != spec.dtype:
        verb, wants = "takes" if what == "input" else "makes", f"{spec.dtype}{list(spec.shape)}"
        way_out = ""
        if isinstance(value, np.ndarray) and value.dtype.kind in "iufc" and value.dtype.newbyteorder() == spec.dtype:
            way_out = f"; its bytes are in the other order: give an array of that type, as by astype({spec.dtype!r})"
        raise ModelError(f"{what} {spec.name!r} is {value.dtype}{list(shape)}, but the model {verb} {wants}{way_out}")


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a shape is the wanted one where that is static."""
    return len(shape) == len(wanted) and all(w in (-1, size) for size, w in zip(shape, wanted, strict=True))


def are_arrays(values: Iterable[Any]) -> bool:
    """Whether all values are NumPy arrays."""
    for value in values:  # noqa: SIM110  # a generator takes longer than many a small model
        if not isinstance(value, np.ndarray):
            return False
    return True


def is_on_cpu(value: Any) -> bool:
    """Whether a value is a tensor of TVM's in the CPU's memory, which goes into a module as it is."""
    return isinstance(value, tvm_ffi.Tensor) and value.device.type == "cpu"


def aligned_tensor(spec: TensorSpec, *, zeros: bool = True) -> tuple[np.ndarray, Any]:
    """An array of an input's shape, aligned as TVM wants it, and a tensor that shares its memory."""
    dtype = np.dtype(spec.dtype)
    nbytes = math.prod(spec.shape) * dtype.itemsize
    storage = (np.zeros if zeros else np.empty)(nbytes + ALIGNMENT, np.uint8)
    begin = -storage.ctypes.data % ALIGNMENT
    # Of an array without elements NumPy and TVM take different strides for compact ones.
    strides = [math.prod(spec.shape[axis + 1 :]) * dtype.itemsize for axis in range(len(spec.shape))]
    array: np.ndarray = np.ndarray(spec.shape, dtype, storage, begin, strides)
    return array, tvm_ffi.from_dlpack(array)


def plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same memory; of an axis of one element NumPy may have any stride, and those of a new shape are as TVM's."""
    return array.reshape(-1).reshape(array.shape)


def to_numpy(result: Any) -> Any:
    """A result as NumPy arrays: one, or a tuple."""
    if not isinstance(result, tvm_ffi.Tensor):
        return tuple(to_numpy(part) for part in result)
    try:
        return np.from_dlpack(result).copy()  # a tenth of the time of TVM's own way
    except (BufferError, RuntimeError):  # on a GPU, or of a type that NumPy has not
        import tvm

        return (result if isinstance(result, tvm.runtime.Tensor) else tvm.runtime.from_dlpack(result)).numpy()


def rows_first(spec: TensorSpec, axis: int | None, rows: int) -> TensorSpec:
    """An input with some axis as its first one, of so many rows; as it is where there is no such axis."""
    if axis is None:
        return spec
    return TensorSpec(spec.name, (rows, *spec.shape[:axis], *spec.shape[axis + 1 :]), spec.dtype)


def bind(inputs: Sequence[TensorSpec], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The value of each input, given by position or by name.

    Raises
    ------
    ModelError
        One is missing or unknown, or was given twice.
    """
    if len(args) == len(inputs) and not kwargs:
        return list(args)
    names = [spec.name for spec in inputs]
    if not args and len(kwargs) == len(names) and all(map(kwargs.__contains__, names)):
        return [kwargs[name] for name in names]
    if len(args) > len(names):
        raise ModelError(f"{len(args)} inputs given, but the model has {len(names)}; give {', '.join(names)}")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise ModelError(f"the model has no input {name!r}; its inputs are {', '.join(names)}")
        if name in given:
            raise ModelError(f"input {name!r} was given twice, by position and by name; give it once")
        given[name] = value
    missing = [name for name in names if name not in given]
    if missing:
        raise ModelError(f"no value for the inputs {', '.join(missing)}; pass them by position or by name")
    return [given[name] for name in names]


def leaves_of(result: Any) -> list[Any]:
    """The tensors of a result, tuples within tuples one after another."""
    if isinstance(result, np.ndarray) or hasattr(result, "__dlpack__"):
        return [result]
    return [leaf for part in result for leaf in leaves_of(part)]
