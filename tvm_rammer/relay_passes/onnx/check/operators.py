"""Which operators TVM's frontend and the converters of this package have, and what to do about others."""

from collections import Counter
from collections.abc import Collection, Iterable

import onnx
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

from ....errors import UnsupportedOperatorError
from ..compile_time import asked, make_constant
from ..control.outline import is_control, is_made_here
from ..converters import has_own
from ..read import MICROSOFT
from .names import name_of

_REMEDY = (
    "export the model without them: recurrent layers and loops of a length that is known, quantised layers as "
    "QuantizeLinear and DequantizeLinear"
)
_REMEDIES = {
    "ai.onnx.ml": "compute what is no tensor arithmetic (text, encoders of strings, support vector machines) outside "
    "of the model, and export classifiers without ZipMap (of skl2onnx: options={'zipmap': False})",
    "com.microsoft.extensions": "decode and encode images, sound and text outside of the model, and keep what is "
    "between (onnx.utils.extract_model)",
    "com.microsoft.nchwc": "take the model as it was before ONNX Runtime optimised it for one processor "
    "(ORT_ENABLE_ALL), or let it write the extended level at most",
}
"""What to do about the operators of a domain; otherwise `_REMEDY`."""

_OF_ONE_PROCESSOR = "com.microsoft.nchwc."

_OF_MICROSOFT = frozenset(["MatMulInteger16"])


def check_supported(nodes: Iterable[onnx.NodeProto], constants: Collection[str], *, loops: bool = False) -> None:
    """Check that TVM's frontend has the operators of all nodes, where Scans may become loops.

    Parameters
    ----------
    nodes : iterable of onnx.NodeProto
    constants : collection of str
        Names of what is constant.
    loops : bool

    Raises
    ------
    UnsupportedOperatorError
        Names all that it lacks, how many there are of each, and one node of each as an example.
    """
    counts: Counter[str] = Counter()
    example: dict[str, str] = {}
    computed: set[str] = set()
    for node in nodes:
        if not has_converter(node) and not (loops and node.op_type == "Scan"):
            kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            counts[kind] += 1
            computed.update(name for name in asked(node) if name not in constants)
            example.setdefault(kind, name_of(node))
    # Nobody infers types behind the operators for one processor, so that others are not lowered.
    counts = Counter({kind: n for kind, n in counts.items() if kind.startswith(_OF_ONE_PROCESSOR)}) or counts
    if counts:
        listed = ", ".join(f"{kind} ({n} x, e.g. {example[kind]!r})" for kind, n in sorted(counts.items()))
        found = {kind.rpartition(".")[0] for kind in counts} & _REMEDIES.keys()
        remedies = [_REMEDIES[domain] for domain in sorted(found)] + ([make_constant(computed)] if computed else [])
        remedies = remedies or [_REMEDY]
        raise UnsupportedOperatorError(f"TVM's ONNX frontend lacks {listed}; {'; '.join(remedies)}")


def has_converter(node: onnx.NodeProto) -> bool:
    """Whether TVM's frontend has the operator of a node."""
    if has_own(node) or is_control(node) or is_made_here(node):
        return True
    if node.domain in ("", "ai.onnx"):
        own = node.op_type != "Attention"  # TVM's converter of that name is Microsoft's, another operator
        return node.op_type == "Constant" or (own and node.op_type in _get_convert_map())
    return node.domain == MICROSOFT and node.op_type in _OF_MICROSOFT and node.op_type in _get_convert_map()
