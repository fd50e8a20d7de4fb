"""The interpreter calls rTasks: LLVM compiles each once, and none within the interpreter."""

import re

import numpy as np
import pytest
from tvm import relax, te

import tvm_rammer
from tests.relay_passes.models import model, node, random, tensor, value


@pytest.fixture(scope="module")
def text():
    """Small functions of one call each, which LLVM would inline."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("MatMul", ["t", "w"], ["a"]),
        node("Exp", ["a"], ["b"]),
        node("ReduceSum", ["b"], ["y"], keepdims=0),
    ]
    proto = model(nodes, [value("x", (8, 6))], ["y"], [tensor("w", random(8, 5))])
    return tvm_rammer.compile(proto, cache=False).executable.mod.imports[0].inspect_source("ll")


def _function(text, name):
    return re.search(rf"^define [^\n]*@{name}\(.*?^}}", text, re.MULTILINE | re.DOTALL).group()


def test_no_rtask_is_inlined(text):
    walk = _function(text, r"\w+_walk")
    rtasks = re.findall(r"^define [^\n]*@(\w+_parts\w+)\(", text, re.MULTILINE)
    assert len(rtasks) >= 2
    assert all(f"@{name}(" in walk for name in rtasks)
    assert not re.search(r"= (fmul|fadd|fcmp|load float|load <)", walk), "no arithmetic of an rTask"


def test_no_stub_is_left(text):
    assert "rammer_call_" not in text


@pytest.mark.parametrize("name", ['wéird-näme "x" \\ .%', "a b", "ß"])
def test_a_function_may_be_called_anything(name):
    rows = te.placeholder((64, 64), name="rows")
    doubled = te.compute((64, 64), lambda i, j: rows[i, j] * 2.0, name="doubled")
    bb = relax.BlockBuilder()
    callee = bb.add_func(te.create_prim_func([rows, doubled]).with_attr("global_symbol", name), name)
    x = relax.Var("x", relax.TensorType((64, 64), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(relax.call_tir(callee, (x,), x.ty))
        bb.emit_func_output(y)
    given = random(64, 64)
    np.testing.assert_array_equal(tvm_rammer.compile(bb.get(), cache=False)(given), 2 * given)
