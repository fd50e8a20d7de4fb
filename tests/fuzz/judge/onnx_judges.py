"""ONNX Runtime and onnx's reference evaluator: what they agree about is right, or the one says that the other lacks."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from .compare import difference, largest_of, unit_of
from .perturb import ELEMENTWISE, perturbed

TRIALS = 4
RECURRENT = ("LSTM", "GRU", "RNN")
OF_MANY_TERMS = ("Det", "GridSample", "Resize", "RoiAlign", "Upsample")
"""Operators that weight what lies around a point, and determinants. Of infinity a weight of 0 makes NaN, and one that
is off by a rounding infinity: what comes out follows from the order of operations, which ONNX leaves open."""
ALONE = frozenset(["DequantizeLinear", "MaxRoiPool", "Scatter", "Upsample"])
"""Operators that onnx's reference evaluator lacks in some opset or in all: ONNX Runtime says alone what is right."""
SUMS = ("ReduceL1", "ReduceSum", "ReduceSumSquare")
POOLS = ("AveragePool", "LpPool", "MaxPool")
LONGEST_SUM = 4096
"""Of fewer numbers than this no sum overflows unless it nears the largest number."""


@dataclass(frozen=True)
class Judgement:
    """What is right.

    Attributes
    ----------
    results : list of arrays
    unit, largest : float
        As `compare.difference` takes them.
    """

    model: onnx.ModelProto
    feeds: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray]
    results: list[np.ndarray]
    unit: float
    largest: float

    def fault(self, got: list[np.ndarray]) -> str | None:
        """Say what is wrong with results, or None; "unstable" where roundings explain it."""
        fault = difference(got, self.results, self.unit, self.largest)
        if fault is None or not fault.startswith(("value", "inf", "NaN")):
            return fault
        if self._may_overflow() and not fault.startswith("value"):
            return "unstable"
        slack = [8 * s for s in self._spread()]
        return "unstable" if difference(got, self.results, self.unit, self.largest, slack) is None else fault

    def _may_overflow(self) -> bool:
        """Whether a sum of a few numbers is infinite in one order, and finite in another."""
        limits = [np.finfo(r.dtype).max for r in self.results if r.dtype in (np.float32, np.float64)]
        return any(self.largest > float(limit) / LONGEST_SUM for limit in limits)

    def _spread(self) -> list[np.ndarray]:
        """How far each element moves under roundings."""
        spread = [np.zeros(r.shape) for r in self.results]
        for seed in range(TRIALS):
            try:
                moved = by_onnxruntime(perturbed(self.model, dict(self.values), seed), self.feeds)
            except Exception:
                continue
            for i, (a, b) in enumerate(zip(moved, self.results, strict=True)):
                if a.shape != b.shape or a.dtype == bool:
                    spread[i][...] = np.maximum(spread[i], np.inf if a.shape != b.shape else 1.0 * (a != b))
                    continue
                with np.errstate(all="ignore"):
                    x, y = a.astype("float64"), b.astype("float64")
                    away = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
                spread[i] = np.maximum(spread[i], np.where(np.isnan(away), np.inf, away))
        return spread


def by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """All outputs, by ONNX Runtime without its optimisations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(a) for a in session.run(None, dict(feeds))]


def by_reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """All values of the main graph, by onnx's reference evaluator."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values = ReferenceEvaluator(model).run(None, dict(feeds), intermediate=True)
    assert isinstance(values, dict)
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return constants | {name: value for name, value in values.items() if name and value is not None}


def all_by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """All values of the main graph, by ONNX Runtime."""
    told = onnx.ModelProto()
    told.CopyFrom(model)
    known = {o.name for o in model.graph.output}
    made = [name for node in model.graph.node for name in node.output if name and name not in known]
    told.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in made)
    names = [o.name for o in told.graph.output]
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return constants | dict(feeds) | dict(zip(names, by_onnxruntime(told, feeds), strict=True))


def _lacks(error: Exception) -> bool:
    """Whether the reference evaluator has not one of the operators that ONNX Runtime may judge alone."""
    found = re.search(r"No (?:registered )?implementation for operator '(\w+)'", str(error))
    return found is not None and found[1] in ALONE


def undefined(model: onnx.ModelProto, values: Mapping[str, Any]) -> bool:
    """Whether ONNX leaves open what comes out of numbers that are not finite, or that an integer type cannot hold."""
    for node in model.graph.node:
        if not node.input or not all(n in values for n in (node.input[0], node.output[0])):
            continue
        if any(isinstance(values[name], list) for name in (node.input[0], node.output[0])):
            continue  # a sequence, whose parts are of several shapes
        x, y = np.asarray(values[node.input[0]]), np.asarray(values[node.output[0]])
        if node.op_type in ("Cast", "CastLike") and _overflows(x, y.dtype):
            return True
        if node.op_type == "Pow" and node.input[1] in values and _overflows(_power(x, values[node.input[1]]), y.dtype):
            return True  # an integer to a fractional power is a Cast, too
        if node.op_type in OF_MANY_TERMS and not _is_nearest(node) and not _all_finite(node, values):
            return True
        chosen = node.op_type in RECURRENT and any(a.name == "activations" for a in node.attribute)
        if chosen and not _all_finite(node, values):
            return True  # ONNX Runtime's functions make 0 of NaN here, and the other judge has none of them
        if node.op_type == "QuantizeLinear" and np.isnan(x).any():
            return True
        if node.op_type == "Shrink" and x.dtype.kind in "iu" and _overflows(_shrunk(node, x), x.dtype):
            return True  # both judges subtract a number of floating point, which may be NaN
        if node.op_type == "ReduceLogSumExp" and x.dtype.kind in "iu":
            return True  # ONNX Runtime cuts off each power, too, and the other judge fails
        if node.op_type in SUMS and x.dtype.kind in "iu" and _overflows(_largest_sum(node, x), x.dtype):
            return True  # ONNX Runtime sums up some numbers apart, and cuts off; of the other judge types differ
        if _is_widened(node):
            return True  # both judges pad as if the windows had no gaps, and do not agree how
        if _needs_less_than_no_pad(node):
            return True  # ONNX Runtime refuses it for some pools, and cuts off for others; the other judge, too
        if node.op_type in ("MaxPool", "MaxRoiPool") and np.isnan(x.astype("float64")).any():
            return True  # both judges may pass over a NaN, by its place in the window; we take it for the largest
        if node.op_type == "DynamicQuantizeLinear" and not (np.isfinite(x).all() and np.all(values[node.output[1]])):
            return True  # the zero point is NaN; of denormal numbers the scale may be 0
    return False


def _shrunk(node: onnx.NodeProto, x: np.ndarray) -> np.ndarray:
    """All numbers that a Shrink may make of some."""
    bias = next((a.f for a in node.attribute if a.name == "bias"), 0.0)
    wide = x.astype("float64")
    return np.stack([wide, wide - bias, wide + bias])


def _largest_sum(node: onnx.NodeProto, x: np.ndarray) -> np.ndarray:
    """As much as any sum of some numbers may be."""
    wide = np.abs(x.astype("float64"))
    return np.asarray((wide * wide if node.op_type == "ReduceSumSquare" else wide).sum())


def _is_widened(node: onnx.NodeProto) -> bool:
    """Whether it is a pool whose pads follow from its strides, and whose windows have gaps."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    gaps = any(n != 1 for n in given.get("dilations", ()))
    return node.op_type in POOLS and gaps and given.get("auto_pad", b"").startswith(b"SAME")


def _needs_less_than_no_pad(node: onnx.NodeProto) -> bool:
    """Whether windows of a size that follows from the strides may be narrower than those."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    same = given.get("auto_pad", b"").startswith(b"SAME")
    return same and any(k < s for k, s in zip(given.get("kernel_shape", ()), given.get("strides", ()), strict=False))


def _is_nearest(node: onnx.NodeProto) -> bool:
    modes = [a.s for a in node.attribute if a.name == "mode"]
    return modes == [b"nearest"] or (not modes and node.op_type in ("Resize", "Upsample"))


def _all_finite(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    read = [np.asarray(values[name]) for name in node.input if name in values]
    return all(np.isfinite(a.astype("float64")).all() for a in read if a.dtype.kind == "f")


def _power(base: np.ndarray, exponent: Any) -> np.ndarray:
    """A power in double precision; the base, if both are integers, whose powers are integers, too."""
    if np.asarray(exponent).dtype.kind in "iu":
        return base
    with np.errstate(all="ignore"):
        return np.asarray(np.power(base.astype("float64"), np.asarray(exponent, "float64")))


def _overflows(x: np.ndarray, dtype: np.dtype) -> bool:
    if x.dtype.kind in "iub" or dtype.kind not in "iu":
        return False
    ends, wide = np.iinfo(dtype), x.astype("float64")
    return not ((wide > float(ends.min) - 1) & (wide < float(ends.max) + (ends.bits < 64))).all()


def judge(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> Judgement | str:
    """What is right, or why nobody knows."""
    try:
        ours = by_onnxruntime(model, feeds)
    except Exception as error:
        return f"onnxruntime: {error}"
    try:
        values = by_reference(model, feeds)
        theirs = [np.asarray(values[o.name]) for o in model.graph.output]
    except Exception as error:
        if not _lacks(error):
            return f"reference: {error}"
        values, theirs = all_by_onnxruntime(model, feeds), ours
    if undefined(model, values):
        return "undefined: ONNX leaves open what comes of a number that is not finite, or too large for its type"
    arrays = [v for v in values.values() if isinstance(v, np.ndarray | np.generic)]
    unit = unit_of(arrays) or 1e-9
    elementwise = all(node.op_type in ELEMENTWISE for node in model.graph.node)
    largest = 0.0 if elementwise else largest_of(arrays)
    judgement = Judgement(model, feeds, values, ours, unit, largest)
    fault = difference(theirs, ours, unit, largest)
    return f"judges disagree: {fault}" if fault else judgement
