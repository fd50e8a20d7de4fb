"""Barriers that TVM adds: left out beside those of code that has all it needs, and only there."""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.tirx.op import tvm_storage_sync

from tvm_rammer.loads import own_barrier, without_added_barriers


def added(scope="shared"):
    return tirx.Evaluate(tvm_storage_sync(scope))


def barriers(body):
    """The scope of each barrier, and whether it is the code's own."""
    found = []
    tvm_ffi.structural_walk(body, [(Call, found.append)], order="pre")
    return [(str(call.args[0].value), bool(call.args[1])) for call in found]


def test_what_tvm_adds_is_left_out_where_code_has_its_own():
    body = tirx.SeqStmt([added(), own_barrier(), added(), own_barrier()])
    assert barriers(without_added_barriers(body)) == [("shared", True), ("shared", True)]


def test_code_without_its_own_keeps_them():
    body = tirx.SeqStmt([added(), added()])
    assert without_added_barriers(body).same_as(body)


def test_barriers_of_warps_stay():
    body = tirx.SeqStmt([added("warp"), own_barrier(), added("warp")])
    assert barriers(without_added_barriers(body)) == [("warp", False), ("shared", True), ("warp", False)]
