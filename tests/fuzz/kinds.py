"""Kind of case -> the function that makes it of a seed."""

from collections.abc import Callable

from . import injected
from .case import Case
from .generate.files import damaged_case
from .generate.graphs import gpu_case, graph_case, ways_case
from .generate.kernels import kernel_case
from .generate.scripts import script_case
from .generate.sequences import sequence_case
from .generate.values import hostile_case

KINDS: dict[str, Callable[[int], Case]] = {
    "graphs": graph_case,
    "files": damaged_case,
    "primfuncs": script_case,
    "kernels": kernel_case,
    "values": hostile_case,
    "ways": ways_case,
    "gpus": gpu_case,
    "sequences": sequence_case,
}
ALL = KINDS | {"injected": injected.injected_case}
"""With the one that tests of the fuzzer use."""
