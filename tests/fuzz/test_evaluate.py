"""What NumPy makes of random functions, where TVM's lowering is of no help."""

import numpy as np
import pytest

from .generate.functions import mirrored
from .generate.recipe import Buffer, Expr, Function, Stage, plus, span, times
from .generate.scripts import Line, Module, script
from .judge import kernels
from .judge.evaluated import Evaluated
from .judge.tvm_judge import parse

V: list[Expr] = [("var", 0), ("var", 1)]


def module_of(given: Buffer, result: Buffer, *stages: Stage) -> Module:
    function = Function("f0", (given,), (), (result,), stages, True)
    return Module("kernels", (given,), (function,), (Line((result,), "", (given.name,), "f0"),))


def backwards() -> tuple[Module, np.ndarray, np.ndarray]:
    """Rows that are repeated and then reversed, of which TVM's lowering makes others."""
    position = plus(times(V[0], -1), 159)
    line: Expr = ("add", ("div", V[1], 2), ("div", ("add", ("div", V[1], 2), position), 32))
    stage = Stage("y", (160, 2), (), "", 0, ("load", "x", line, V[1]))
    x = np.arange(10, dtype="float32").reshape(5, 2)
    made = module_of(Buffer("x", "float32", (5, 2)), Buffer("y", "float32", (160, 2)), stage)
    return made, x, np.repeat(x, 32, 0)[::-1]


def test_numpy_counts_where_tvm_computes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x, want = backwards()
    right = Evaluated(module, [x])
    np.testing.assert_array_equal(right.want[0], want)
    assert right.fault([want + 1]).startswith("value")
    monkeypatch.setattr(kernels, "hide_quotients", lambda func: func)
    func = parse(script(module))["f0"]
    verdict = kernels.judge_kernels(func, [x], weights=False, right=right)
    assert verdict.plain and verdict.rules and not verdict.fault
    assert kernels.judge_kernels(func, [x], weights=False).fault, "TVM is right: its lowering would do as a judge"


def test_what_nobody_writes_may_be_anything() -> None:
    stage = Stage("y", (3,), (4,), "sum", 2, ("load", "x", *V), where=("cmp", "<", V[0], ("num", 2)))
    module = module_of(Buffer("x", "float32", (3, 4)), Buffer("y", "float32", (3,)), stage)
    x = np.arange(12, dtype="float32").reshape(3, 4)
    right = Evaluated(module, [x])
    assert right.fault([np.float32([8, 24, 99])]) is None
    assert right.fault([np.float32([8, 25, 99])]).startswith("value: result 0 at (1,)")


def test_what_is_written_last_stays_and_sums_begin_anew() -> None:
    """Rows write the same element; the loops go along the columns first, or last."""
    stages = [
        Stage("y", (3,), (4,), "sum", 0, ("load", "x", *V), order=order, place=(("num", 0),))
        for order in ((0, 1), (1, 0))
    ]
    x = np.arange(12, dtype="float32").reshape(3, 4)
    given, result = Buffer("x", "float32", (3, 4)), Buffer("y", "float32", (1,))
    wants = [Evaluated(module_of(given, result, stage), [x]).want[0] for stage in stages]
    np.testing.assert_array_equal(wants, [[x[2].sum()], [x[2, 0] + x[:, 1:].sum()]])


def test_integers_wrap_and_half_precision_is_rounded() -> None:
    for dtype, x, want in (("int32", [2**30] * 4, 0), ("float16", [2048, 1, 1, 1], 2048)):
        stage = Stage("y", (1,), (4,), "sum", 0, ("load", "x", V[1]))
        module = module_of(Buffer("x", dtype, (4,)), Buffer("y", dtype, (1,)), stage)
        assert Evaluated(module, [np.array(x, dtype)]).want[0] == [want]


def test_mirrored_edges() -> None:
    index = mirrored(V[0], 2, 5)
    assert span(index, (9,)) == (0, 4)
    stage = Stage("y", (9,), (), "", 0, ("load", "x", index))
    module = module_of(Buffer("x", "float32", (5,)), Buffer("y", "float32", (9,)), stage)
    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(Evaluated(module, [x]).want[0], np.pad(x, 2, "reflect"))
