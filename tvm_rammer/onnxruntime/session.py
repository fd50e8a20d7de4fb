"""ONNX Runtime's `InferenceSession` in front of the compiler: existing code moves by one line.

from tvm_rammer import InferenceSession  # instead of: from onnxruntime import InferenceSession
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ..driver import Extent, compile
from ..errors import ModelError
from ..files import is_saved_model
from ..open_shapes.module import SymbolicModule
from ..open_shapes.signature import Signature, read_signature
from ..runtime.module import RammerModule
from ..runtime.tensors import as_array
from ..saving.load import load
from .io_binding import IOBinding
from .metadata import ModelMetadata, read_metadata, saved_metadata
from .node_arg import NodeArg, has_open_outputs, inputs_of, outputs_of
from .options import SessionOptions, threads_of
from .providers import CPU_PROVIDER, check_providers
from .values import OrtValue, array_of

_MEANINGLESS = ("disabled_optimizers", "enable_fallback", "read_config_from_model")
"""Other arguments of ONNX Runtime's session."""

_OPTIONS = inspect.signature(compile).parameters.keys() - {"model", "target", "shapes"}


class InferenceSession:
    """A model behind the interface of `onnxruntime.InferenceSession`, on this machine's CPU.

    A model of static shapes is compiled at once, or taken from the cache. One with open shapes is compiled when it is
    run, once for each set of shapes (`SymbolicModule`); to have that done at once, give `shapes`.

    Parameters
    ----------
    path_or_bytes : path, bytes or onnx.ModelProto
        An ONNX model, or a file that `RammerModule.save` wrote.
    sess_options : SessionOptions or onnxruntime.SessionOptions, optional
        `intra_op_num_threads` is heeded. What concerns graph optimisation, logging or memory has no meaning here.
    providers : sequence of str or (str, mapping), optional
        Must hold "CPUExecutionProvider", if given; others are passed over, and so are all options.
    provider_options : sequence of mapping, optional
        One for each provider, without a meaning here.
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
        self.set_providers(providers, provider_options)
        self._session_options = SessionOptions() if sess_options is None else sess_options
        threads = threads_of(sess_options)
        options = {name: value for name, value in options.items() if name not in _MEANINGLESS}
        options |= {"threads": threads} if threads else {}
        if unknown := options.keys() - _OPTIONS:
            raise ModelError(f"a session takes no {', '.join(sorted(unknown))}; it takes {', '.join(sorted(_OPTIONS))}")
        sizes = getattr(sess_options, "free_dimensions", None)
        shapes = {**sizes, **(shapes or {})} if sizes else shapes
        model = _model(path_or_bytes)
        self._metadata: Callable[[], ModelMetadata]
        self._signature: Callable[[], Signature | None]
        if isinstance(model, str | os.PathLike) and is_saved_model(model):
            if shapes is not None or options.keys() - {"concurrency"}:
                raise ModelError(f"{model!r} is compiled already; leave out shapes, threads and other options")
            self._module = load(model, **options)
            self._metadata = partial(saved_metadata, self._module, model)
            self._signature = lambda: None
        else:
            self._module = compile(model, shapes=shapes, **options)
            # A path is read when somebody asks: most do not, and a file may be large.
            found = read_metadata(model) if type(model).__name__ == "ModelProto" else None
            self._metadata = cache(partial(read_metadata, model)) if found is None else lambda: found
            self._signature = cache(partial(read_signature, model))
            if not isinstance(model, str | os.PathLike):  # which would be kept, with its weights
                declared = self._signature() if has_open_outputs(self._module) else None
                self._signature = lambda: declared

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

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, Any], run_options: Any = None
    ) -> list[OrtValue]:
        """Run the model on values, of this package or of ONNX Runtime; raises as `run`."""
        feed = input_dict_ort_values
        if isinstance(feed, Mapping):
            feed = {name: array_of(repr(name), value) for name, value in feed.items()}
        return [OrtValue(array) for array in self.run(output_names, feed, run_options)]

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
        return inputs_of(self._module)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return outputs_of(self._module, self._signature)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: weights that the model gives are constants, also where it lists them as inputs."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the ONNX file says of itself.

        Raises
        ------
        ModelError
            The model is no ONNX file, or that is no longer there; or it was saved, and was none.
        """
        return self._metadata()

    def get_session_options(self) -> Any:
        """The options that the session was given, or those by default."""
        return self._session_options

    def get_providers(self) -> list[str]:
        """What ONNX Runtime calls the device that the model runs on."""
        return [CPU_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """None are read."""
        return {CPU_PROVIDER: {}}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Look at providers as the constructor does; the model runs where it did.

        Raises
        ------
        ModelError
            "CPUExecutionProvider" is not among them, or they are none.
        """
        check_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """Has no meaning here."""

    def enable_fallback(self) -> None:
        """Has no meaning here."""

    def end_profiling(self) -> str:
        """The name of the profile that ONNX Runtime would write: none, since `enable_profiling` is refused."""
        return ""

    @property
    def modules(self) -> tuple[RammerModule, ...]:
        """What was compiled so far: one module, or one for each set of shapes."""
        return self._module.modules if isinstance(self._module, SymbolicModule) else (self._module,)


def _model(given: Any) -> Any:
    if not isinstance(given, bytes | bytearray | memoryview):
        return given
    import onnx

    try:
        return onnx.ModelProto.FromString(bytes(given))
    except Exception as error:
        raise ModelError("the bytes are no ONNX model; give the contents of an .onnx file") from error
