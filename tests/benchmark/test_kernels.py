"""Single operators against a peer: one that the peer gets wrong is left out, and one that we get wrong is an error."""

import numpy as np
import pytest

from tvm_rammer.benchmark import kernels
from tvm_rammer.benchmark.kernels import as_table, bench_kernels
from tvm_rammer.errors import ModelError

ONLY, TWO = "mean of few rows", "mean of"


def wrong(real, number):
    """A peer whose `number`-th operator has other results."""
    made = []

    def peer(*args):
        run = real(*args)
        made.append(run)
        return run if len(made) - 1 != number else lambda: [np.asarray(a) + 1 for a in run()]

    return peer


def test_an_operator_that_the_peer_gets_wrong_is_left_out(monkeypatch):
    monkeypatch.setattr(kernels, "_peer", wrong(kernels._peer, 0))
    said = []
    (row,) = bench_kernels(TWO, seconds=0.1, progress=said.append)
    assert row.ratio == pytest.approx(row.peer_ms / row.ours_ms)
    assert row.operator in as_table([row])
    (left_out,) = (text for text in said if "left out" in text)
    assert "ours are those of onnx's reference evaluator" in left_out and row.operator not in left_out


def test_none_that_can_be_timed_is_an_error(monkeypatch):
    monkeypatch.setattr(kernels, "_peer", wrong(kernels._peer, 0))
    with pytest.raises(ModelError, match="no operator whose name contains 'mean of few rows' can be timed"):
        bench_kernels(ONLY, seconds=0.1)


def test_a_wrong_result_of_ours_is_an_error(monkeypatch):
    real = kernels._ours

    def ours(*args):
        import tvm

        return lambda: tvm.runtime.tensor(real(*args)().numpy() + 1)

    monkeypatch.setattr(kernels, "_ours", ours)
    with pytest.raises(ModelError, match=r"mean of few rows: results differ by .*: nothing was timed"):
        bench_kernels(ONLY, seconds=0.1)


def test_rows_that_the_data_choose():
    (row,) = bench_kernels("chosen: 10 rows", seconds=0.1)
    assert row.ours_ms > 0 and row.peer_ms > 0


def test_an_unknown_peer_is_an_error():
    with pytest.raises(ModelError, match="unknown peer 'nobody'"):
        bench_kernels(ONLY, against="nobody")
