"""ONNX Runtime's `InferenceSession` in front of the compiler: existing code moves by one line.

from tvm_rammer import InferenceSession  # instead of: from onnxruntime import InferenceSession
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import debug
from .arguments import names_of
from .driver import Extent, compile
from .errors import ModelError
from .files import is_saved_model
from .open_shapes.module import SymbolicModule
from .open_shapes.signature import Declared
from .runtime.bound.io_binding import IOBinding
from .runtime.module import RammerModule
from .runtime.tensors import TensorSpec, as_array
from .saving.load import load

CPU_PROVIDER = "CPUExecutionProvider"

_TYPES = {"float32": "float", "float64": "double"}
"""Element types whose names differ in ONNX Runtime."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output, as `onnxruntime.NodeArg`.

    Parameters
    ----------
    name : str
    shape : list
        An integer, the name of a symbolic dimension, or None for each dimension.
    type : str
        Such as `tensor(float)`.
    """

    name: str
    shape: list[int | str | None]
    type: str


class InferenceSession:
    """A model behind the interface of `onnxruntime.InferenceSession`, on this machine's CPU.

    A model of static shapes is compiled at once, or taken from the cache. One with open shapes is compiled when it is
    run, once for each set of shapes (`SymbolicModule`); to have that done at once, give `shapes`.

    Parameters
    ----------
    path_or_bytes : path, bytes or onnx.ModelProto
        An ONNX model, or a file that `RammerModule.save` wrote.
    sess_options : onnxruntime.SessionOptions, optional
        `intra_op_num_threads` is heeded. What concerns graph optimisation, logging or memory has no meaning here.
    providers : sequence of str or (str, mapping), optional
        Must hold "CPUExecutionProvider", if given; others are passed over.
    provider_options : sequence of mapping, optional
        Must be empty.
    shapes : mapping, optional
        As in `tvm_rammer.compile`.
    **options
        Others of `tvm_rammer.compile`: `policy`, `tuning_logs`, `concurrency`, `cache`, `on_new_shape` and so on.

    Raises
    ------
    ModelError
        The model cannot be read, or an argument asks for what is not done here.
    RammerError
        As in `tvm_rammer.compile` and `tvm_rammer.load`.
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        shapes: Mapping[str, int | Sequence[Extent]] | None = None,
        **options: Any,
    ) -> None:
        _check_providers(providers, provider_options)
        threads = _threads(sess_options)
        options |= {"threads": threads} if threads else {}
        model = _model(path_or_bytes)
        if isinstance(model, str | os.PathLike) and is_saved_model(model):
            if shapes is not None or options.keys() - {"concurrency"}:
                raise ModelError(f"{model!r} is compiled already; leave out shapes, threads and other options")
            self._module = load(model, **options)
        else:
            self._module = compile(model, shapes=shapes, **options)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[np.ndarray[Any, Any]]:
        """Run the model.

        Parameters
        ----------
        output_names : sequence of str, optional
            Which outputs, in which order; all of them where there are none.
        input_feed : mapping of str to array
        run_options : onnxruntime.RunOptions, optional
            Has no meaning here.

        Raises
        ------
        ModelError
            There is no such input or output, an input is missing, or one has another type or shape.
        """
        feed = input_feed
        if isinstance(feed, Mapping):  # the module refuses what is none, and names that are unknown
            specs = {spec.name: spec for spec in self._module.inputs}
            feed = {name: as_array(value, specs[name]) if name in specs else value for name, value in feed.items()}
        results: list[np.ndarray[Any, Any]] = self._module.run(output_names, feed)
        return results

    def io_binding(self) -> IOBinding:
        """A binding of arrays to inputs and outputs, for `run_with_iobinding`."""
        return IOBinding(self._module.bind)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Run the model from the inputs of a binding to its outputs.

        Parameters
        ----------
        iobinding : IOBinding
            Of this session.
        run_options : onnxruntime.RunOptions, optional
            Has no meaning here.

        Raises
        ------
        ModelError
            It is no binding; there is no such input or output, or one has another type or shape.
        """
        if not isinstance(iobinding, IOBinding):
            raise ModelError(f"{iobinding!r} is no binding; give what io_binding() returns")
        iobinding.run()

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the model's order."""
        module = self._module
        if not isinstance(module, SymbolicModule):
            return [_arg(spec) for spec in module.inputs]
        named = module.shapes.extents()
        return [_declared(d, named[d.name] if d.shape is not None else None) for d in module.signature.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        module = self._module
        if not isinstance(module, SymbolicModule):
            return [_arg(spec) for spec in module.outputs]
        return [_declared(d, d.shape) for d in module.signature.outputs]

    def get_providers(self) -> list[str]:
        """What ONNX Runtime calls the device that the model runs on."""
        return [CPU_PROVIDER]

    @property
    def modules(self) -> tuple[RammerModule, ...]:
        """What was compiled so far: one module, or one for each set of shapes."""
        return self._module.modules if isinstance(self._module, SymbolicModule) else (self._module,)


def _model(given: Any) -> Any:
    if not isinstance(given, bytes):
        return given
    import onnx

    try:
        return onnx.ModelProto.FromString(given)
    except Exception as error:
        raise ModelError("the bytes are no ONNX model; give the contents of an .onnx file") from error


def _check_providers(providers: Sequence[Any] | None, options: Sequence[Mapping[str, Any]] | None) -> None:
    pairs = [_provider(entry) for entry in names_of("providers", providers or ())]
    names = [name for name, _ in pairs]
    own = [given for name, given in pairs if name == CPU_PROVIDER]
    if names and CPU_PROVIDER not in names:
        raise ModelError(
            f"the providers are {', '.join(names)}, and a session runs on {CPU_PROVIDER}; add it, or compile for a GPU "
            "by tvm_rammer.compile(model, target='cuda:h200')"
        )
    if any(options or ()) or any(own):
        raise ModelError("options of providers are not read here; leave them out")
    if passed := [name for name in names if name != CPU_PROVIDER]:
        debug.say(1, f"not used: {', '.join(passed)}; the model runs on {CPU_PROVIDER}")


def _provider(entry: Any) -> tuple[str, Mapping[str, Any]]:
    """A provider's name and options, of a name or a pair of both."""
    name, options = (entry, {}) if isinstance(entry, str) else entry if isinstance(entry, tuple) else (None, {})
    if not isinstance(name, str):
        raise ModelError(f"{entry!r} is no provider; give a name such as {CPU_PROVIDER!r}")
    return name, options


def _threads(options: Any) -> int | None:
    """What `SessionOptions` asks for; 0 means as many as there are cores."""
    if options is None:
        return None
    if not hasattr(options, "intra_op_num_threads"):
        raise ModelError(f"sess_options is {options!r}; give an onnxruntime.SessionOptions, or leave it out")
    if getattr(options, "enable_profiling", False):
        raise ModelError("enable_profiling is set; leave it out, and see tvm_rammer.profile")
    if getattr(options, "optimized_model_filepath", ""):
        raise ModelError("optimized_model_filepath is set, but no ONNX model is written; see RammerModule.save")
    return int(options.intra_op_num_threads) or None


def _arg(spec: TensorSpec) -> NodeArg:
    shape: list[int | str | None] = [extent if extent >= 0 else None for extent in spec.shape]
    return NodeArg(spec.name, shape, _type(spec.dtype))


def _declared(declared: Declared, shape: Sequence[int | str | None] | None) -> NodeArg:
    return NodeArg(declared.name, list(shape or ()), _type(declared.dtype))


def _type(dtype: str) -> str:
    return f"tensor({_TYPES.get(dtype, dtype)})"
