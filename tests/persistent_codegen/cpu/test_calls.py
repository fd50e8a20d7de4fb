"""The interpreter calls rTasks: LLVM compiles each once, and none within the interpreter."""

import re

import pytest

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
