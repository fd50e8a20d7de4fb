"""Threads of a warp that read what others of it wrote have barriers of the block between."""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.tirx.op import tvm_storage_sync

from tvm_rammer.loads import with_barriers_between_stages

PART = tirx.decl_buffer((32,), "bfloat16", "part", scope="shared")
X = tirx.Var("x", "int32")


def warp():
    return tirx.Evaluate(tvm_storage_sync("warp"))


def stage(distance):
    own = tirx.Var(f"own_{distance}", "bfloat16")
    return [tirx.Bind(own, PART[X] + PART[X + distance]), warp(), tirx.BufferStore(PART, own, [X]), warp()]


def branch(*parts):
    return tirx.IfThenElse(X < 2, tirx.SeqStmt(parts) if len(parts) > 1 else parts[0], None)


def scopes(body):
    found = []
    tvm_ffi.structural_walk(body, [(Call, lambda call: found.append(str(call.args[0].value)))], order="pre")
    return found


def test_each_stage_is_a_branch_of_its_own_behind_a_barrier():
    made = list(with_barriers_between_stages(branch(*stage(2), *stage(1))).seq)
    kinds = [type(one).__name__ for one in made]
    assert kinds == ["AllocBuffer"] * 2 + ["IfThenElse", *["Evaluate", "IfThenElse"] * 3]
    assert scopes(tirx.SeqStmt(made)) == ["shared"] * 3
    branches = [one for one in made if isinstance(one, tirx.IfThenElse)]
    assert all(one.condition.same_as(X < 2) or tvm_ffi.structural_equal(one.condition, X < 2) for one in branches)
    assert [str(one.then_case.buffer.scope()) for one in branches] == ["local", "shared"] * 2


def test_no_name_of_a_branch_is_left():
    made = with_barriers_between_stages(branch(*stage(2), *stage(1)))
    assert {v.name for v in tirx.analysis.undefined_vars(made, [])} <= {"x", "part"}


def test_branches_without_stages_stay():
    body = branch(tirx.BufferStore(PART, PART[X] + PART[X + 1], [X]))
    assert with_barriers_between_stages(body).same_as(body)
