"""What is planned of memory, nothing for sizes that data are allowed, but do not have; and what is legalized last."""

import numpy as np
from tvm import relax

import tvm_rammer
from tests.relay_passes.models import by_onnxruntime, model, node, tensor, value
from tvm_rammer.compilation.target import resolve_device, tvm_target
from tvm_rammer.relay_passes import finish


def test_a_slice_of_rows_that_the_data_say_takes_memory_for_those_there_are():
    """TVM plans for `min(999999999, rows)` rows as if there were as many: 9.6 TB."""
    nodes = [
        node("Compress", ["x", "chosen"], ["some"], axis=0),
        node("Slice", ["some", "last", "none", "axis", "back"], ["backwards"]),
        node("Shape", ["backwards"], ["rows"], start=0, end=1),
        node("Sub", ["rows", "one"], ["last_row"]),
        node("Gather", ["backwards", "last_row"], ["y"]),
    ]
    ends = {"last": -1, "none": -(10**9), "axis": 0, "back": -1, "one": 1}
    proto = model(
        nodes, [value("x", [6, 20, 30, 4]), value("chosen", [6], 9)], ["y"],
        [tensor(name, np.array([end])) for name, end in ends.items()],
    )  # fmt: skip
    x = np.arange(14400, dtype="float32").reshape(6, 20, 30, 4)
    feeds = {"x": x, "chosen": np.array([1, 0, 1, 1, 0, 1], bool)}
    np.testing.assert_allclose(
        tvm_rammer.compile(proto, cache=False)(**feeds), *by_onnxruntime(proto, **feeds), rtol=1e-5
    )


def test_a_scatter_that_is_legalized_last_starts_no_threads():
    """LLVM told of it, too, with a warning of an unknown pragma."""
    bb = relax.BlockBuilder()
    types = {"x": "float32", "i": "int64", "u": "float32"}
    x, i, u = (relax.Var(name, relax.TensorType((3,), dtype)) for name, dtype in types.items())
    with bb.function("main", [x, i, u]):
        bb.emit_func_output(bb.emit(relax.op.scatter_elements(x, i, u)))
    text = finish(tvm_target(resolve_device("cpu")))(bb.get()).script()
    assert "scatter" in text
    assert "pragma_scope" not in text and "T.parallel" not in text
