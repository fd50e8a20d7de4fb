"""Programs ask for large pages for their constants and workspaces, once for each."""

import pathlib
import re
import subprocess
import sys

import pytest

from tvm_rammer.persistent_codegen.cpu.launch import LARGE_PAGE, launch_text

SETTING = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")


def asked(sizes):
    return re.findall(r"call void @rammer_ask_large_pages\(ptr @p_asked, (ptr %p\d, i64 \d+)\)",
                      launch_text("p", 3, "x86_64", sizes, stamped=False))  # fmt: skip


def test_what_cannot_hold_a_large_page_is_left_alone():
    assert asked((LARGE_PAGE - 1, 100)) == []
    assert asked((LARGE_PAGE, 3 * LARGE_PAGE)) == [f"ptr %p0, i64 {LARGE_PAGE}", f"ptr %p1, i64 {3 * LARGE_PAGE}"]


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
