"""Programs ask for large pages for their constants and workspaces, once for each."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.script import tirx as T

from tvm_rammer.persistent_codegen.cpu import launch
from tvm_rammer.persistent_codegen.cpu.launch import LARGE_PAGE, launch_text

PACKAGE = pathlib.Path(launch.__file__).parent
SETTING = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")


def asked(sizes):
    text = launch_text("p", 3, "x86_64", sizes, stamped=False)
    return re.findall(r"call void @rammer_ask_large_pages\(ptr @(p_asked\d), i64 8, (ptr %p\d, i64 \d+)\)", text)


def test_what_cannot_hold_a_large_page_is_left_alone():
    assert asked((LARGE_PAGE - 1, 100)) == []
    assert asked((LARGE_PAGE, 3 * LARGE_PAGE)) == [
        ("p_asked0", f"ptr %p0, i64 {LARGE_PAGE}"), ("p_asked1", f"ptr %p1, i64 {3 * LARGE_PAGE}"),
    ]  # fmt: skip


COUNTED = """
@asks = internal global i64 0
define internal i32 @madvise(ptr %memory, i64 %bytes, i32 %advice) {
  %before = load i64, ptr @asks
  %after = add i64 %before, 1
  store i64 %after, ptr @asks
  ret i32 0
}
define internal i64 @asked_so_far() {
  %asks = load i64, ptr @asks
  ret i64 %asks
}
"""
"""In the place of the system's call: counts."""


def test_an_address_is_asked_for_once_and_none_in_turns():
    """Of more addresses than there are places some are never asked for."""
    places, arrays, size = 2, 3, 2 * LARGE_PAGE
    text = (PACKAGE / "large_pages.ll").read_text(encoding="utf-8").replace("declare i32 @madvise(ptr, i64, i32)", "")
    table, memory, out = (
        tirx.decl_buffer(shape, dtype, name)
        for name, shape, dtype in (
            ("table", (places,), "int64"), ("memory", (arrays * size,), "uint8"), ("out", (1,), "int64"),
        )
    )  # fmt: skip
    ask = [
        tirx.Evaluate(T.call_extern(
            "void", "rammer_ask_large_pages", T.address_of(table[0]), T.int64(places), T.address_of(memory[n * size]),
            T.int64(size),
        ))
        for n in range(arrays)
    ]  # fmt: skip
    count = tirx.BufferStore(out, T.call_extern("int64", "asked_so_far"), [0])
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", COUNTED + text, tirx.SeqStmt([*ask, count]))
    func = tirx.PrimFunc([table, memory, out], body).with_attr("global_symbol", "main")
    run = tvm.compile(tvm.IRModule({"main": func}), tvm.target.Target({"kind": "llvm"}))["main"]
    given = [tvm.runtime.tensor(np.zeros(*of)) for of in (((places,), "int64"), (arrays * size, "uint8"), (1, "int64"))]
    for _ in range(3):
        run(*given)
        assert given[2].numpy()[0] == 2 * places  # two calls of the system for each


OWN_PROCESS = """
import pathlib, re
import numpy as np
from onnx import TensorProto, helper, numpy_helper
import tvm_rammer

def large_kb():
    text = pathlib.Path("/proc/self/smaps_rollup").read_text()
    return int(re.search(r"AnonHugePages:\\s+(\\d+) kB", text)[1])

weight = np.random.default_rng(0).standard_normal((2048, 2048)).astype("float32")
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2048]) for name in "xy")
nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
graph = helper.make_graph(nodes, "product", [x], [y], [numpy_helper.from_array(weight, "w")])
module = tvm_rammer.compile(helper.make_model(graph), threads=1, cache=False)
given = np.random.default_rng(1).standard_normal((1, 2048)).astype("float32")
before = large_kb()
results = [module(given) for _ in range(3)]
assert np.allclose(results[0], given @ weight, 1e-3, 1e-3)
assert all(np.array_equal(results[0], result) for result in results)
print(weight.nbytes // 1024, large_kb() - before)
"""
"""Other tests leave large pages behind, on which the constants may lie as it is."""


@pytest.mark.skipif(
    not SETTING.exists() or "[never]" in SETTING.read_text(encoding="utf-8"), reason="Linux gives no large pages here"
)
def test_constants_come_to_lie_on_large_pages_and_results_stay():
    done = subprocess.run([sys.executable, "-c", OWN_PROCESS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    matrix_kb, gained_kb = map(int, done.stdout.split())
    assert gained_kb >= matrix_kb - 2 * LARGE_PAGE // 1024
