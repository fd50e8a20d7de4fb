"""LLVM knows that the pointers of an rTask are distinct: a hint to load weights keeps no sums in memory."""

import platform
import re

import pytest

import tvm_rammer
from tests.relay_passes.models import model, node, random, tensor, value

_ADD = re.compile(r"vfmadd|v?addps")
_STORE = re.compile(r"v?mov[ua]ps\s+%\w+, .*\(")


@pytest.fixture(scope="module")
def programs():
    """Convolutions with more channels than an innermost loop has, and a stock call between two regions."""
    nodes = [
        node("Conv", ["x", "w"], ["wide"]),
        node("Relu", ["wide"], ["a"]),
        node("TopK", ["a", "k"], ["b", "at"]),
        node("Conv", ["b", "v"], ["narrow"], pads=[1] * 4),
        node("Relu", ["narrow"], ["y"]),
    ]
    constants = [tensor("w", random(256, 256, 1, 1)), tensor("v", random(64, 256, 3, 3))]
    constants.append(tensor("k", random(1).astype("int64") * 0 + 14))
    proto = model(nodes, [value("x", (1, 256, 28, 28))], ["y"], constants)
    return tvm_rammer.compile(proto, cache=False).executable.mod.imports[0]


def test_the_pointers_of_every_rtask_are_told_to_be_distinct(programs):
    made = re.findall(r"^define .*@(fused_conv\w+)\((.*)\) ", programs.inspect_source("ll"), re.MULTILINE)
    assert len(made) >= 2
    for name, parameters in made:
        pointers = re.findall(r"ptr [^,]*%\w+", parameters)
        assert len(pointers) >= 3 and all("noalias" in pointer for pointer in pointers), name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 assembly")
def test_no_sums_are_stored_between_two_hints(programs):
    lines = [line.split("#")[0].strip() for line in programs.inspect_source("asm").splitlines()]
    labels = {line[:-1]: n for n, line in enumerate(lines) if re.fullmatch(r"\.L\w+:", line)}
    jumps = ((n, re.fullmatch(r"j\w+\s+(\.L\w+)", line)) for n, line in enumerate(lines))
    loops = [range(labels[jump[1]], n) for n, jump in jumps if jump and labels.get(jump[1], n) < n]
    hints = [n for n, line in enumerate(lines) if line.startswith("prefetch")]
    around = [[body for body in loops if n in body and any(_ADD.match(lines[i]) for i in body)] for n in hints]
    hinted = {min(bodies, key=len) for bodies in around if bodies}
    # A hint at the places of the results is ahead of the whole sum, in the loop that stores them.
    smallest = [body for body in hinted if not any(other != body and other[0] in body for other in hinted)]
    assert smallest
    assert not [lines[i] for body in smallest for i in body if _STORE.match(lines[i])]
