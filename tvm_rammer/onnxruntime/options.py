"""ONNX Runtime's `SessionOptions` and `RunOptions`, for programs that have no ONNX Runtime beside this package."""

import enum
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import ModelError


class GraphOptimizationLevel(enum.IntEnum):
    """Has no meaning here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Has no meaning here."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Has no meaning here."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass(slots=True)
class SessionOptions:
    """What `InferenceSession` may be told; fields that are not listed here have no meaning.

    Parameters
    ----------
    intra_op_num_threads : int
        How many threads work on one call; 0 for one for each core.
    enable_profiling : bool
        Refused by the session if set; see `tvm_rammer.profile`.
    optimized_model_filepath : str
        Refused by the session if given; see `RammerModule.save`.
    free_dimensions : dict of str to int
        Sizes of symbolic dimensions (`add_free_dimension_override_by_name`).
    """

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: int = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: int = ExecutionMode.ORT_SEQUENTIAL
    execution_order: int = ExecutionOrder.DEFAULT
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    use_deterministic_compute: bool = False
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    enable_profiling: bool = False
    optimized_model_filepath: str = ""
    free_dimensions: dict[str, int] = field(default_factory=dict)
    _entries: dict[str, str] = field(default_factory=dict, repr=False)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Give a symbolic dimension its size, as `InferenceSession(..., shapes={name: size})` does."""
        self.free_dimensions[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry; it has no meaning here."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added.

        Raises
        ------
        ModelError
            There is none.
        """
        return _entry(self._entries, key)

    def add_initializer(self, name: str, value: Any) -> NoReturn:
        """Raise a ModelError: weights are those of the model."""
        raise ModelError(f"the weight {name!r} cannot be replaced by an option; change it in the model, and give that")

    def register_custom_ops_library(self, path: str) -> NoReturn:
        """Raise a ModelError: there are no custom operators here."""
        raise ModelError(
            f"the library {path!r} has operators of ONNX Runtime's own kind, which cannot be called here; "
            "leave them out of the model"
        )


@dataclass(slots=True)
class RunOptions:
    """What a run may be told, all without a meaning here."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    training_mode: bool = False
    _entries: dict[str, str] = field(default_factory=dict, repr=False)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry; it has no meaning here."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added; raises a ModelError where there is none."""
        return _entry(self._entries, key)


def threads_of(options: Any) -> int | None:
    """How many threads a session's options ask for; None where they leave that open.

    Raises
    ------
    ModelError
        They are no options, or ask for what is not done here.
    """
    if options is None:
        return None
    if not hasattr(options, "intra_op_num_threads"):
        raise ModelError(f"sess_options is {options!r}; give a SessionOptions, or leave it out")
    if getattr(options, "enable_profiling", False):
        raise ModelError("enable_profiling is set; leave it out, and see tvm_rammer.profile")
    if getattr(options, "optimized_model_filepath", ""):
        raise ModelError("optimized_model_filepath is set, but no ONNX model is written; see RammerModule.save")
    threads: int = options.intra_op_num_threads
    return threads or None


def _entry(entries: dict[str, str], key: str) -> str:
    if key not in entries:
        raise ModelError(f"there is no entry {key!r}; there are {', '.join(entries) or 'none'}")
    return entries[key]
