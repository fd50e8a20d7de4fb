"""Regions: which calls they hold, what they read and write, and that none leads back into itself."""

import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_rammer.errors import ModelError
from tvm_rammer.relay_passes import partition, prepare

from ..models import random
from ..passes.test_fold_batchnorm import build
from ..test_prepare import foreign


def legal(shape, body, dataflow=True):
    """The module of `body` with each operator as a call_tir of its own."""
    return relax.transform.LegalizeOps()(build(shape, body, dataflow=dataflow))


def kinds(graph):
    return {b.name: b.kind for b in graph.buffers}


def test_one_region_of_a_chain():
    def body(b, x):
        return b.emit(relax.op.exp(b.emit(relax.op.add(x, relax.const(random(4))))))

    mod = legal((4,), body)
    (region,) = partition(mod).regions
    assert kinds(region.graph) == {"x": "input", "constant": "constant", "lv": "intermediate", "lv1": "output"}
    assert [op.name for op in region.graph.operators] == ["add", "tir_exp"]
    assert region.graph.operators[1].inputs == region.graph.operators[0].outputs
    assert [v.name for v in region.bindings] == ["lv", "lv1"]
    assert region.buffer_exprs[0].same_as(mod["main"].params[0])


def test_repeated_functions_get_unique_operator_names():
    mod = legal((4,), lambda b, x: b.emit(relax.op.exp(b.emit(relax.op.exp(x)))))
    (region,) = partition(mod).regions
    assert [op.name for op in region.graph.operators] == ["tir_exp", "tir_exp_1"]
    assert [op.function for op in region.graph.operators] == ["tir_exp", "tir_exp"]


def test_tuple_outputs_and_their_other_names():
    def body(b, x):
        parts = b.emit(relax.op.split(x, 2, axis=0))
        first, again = b.emit(relax.TupleGetItem(parts, 0)), b.emit(relax.TupleGetItem(parts, 0))
        other = b.emit(first)
        return b.emit(relax.op.add(b.emit(relax.op.exp(other)), again))

    (region,) = partition(legal((4,), body)).regions
    graph = region.graph
    split, exp, add = graph.operators
    assert len(split.outputs) == 2
    assert exp.inputs == (split.outputs[0],) and add.inputs == (exp.outputs[0], split.outputs[0])
    first, second = (region.buffer_exprs[b] for b in split.outputs)
    assert isinstance(first, relax.Var) and second[1] == 1
    assert graph.buffers[split.outputs[1]].kind == "intermediate"


def test_a_result_that_is_read_outside_is_an_output():
    def body(b, x):
        a = b.emit(relax.op.exp(x))
        return b.emit(relax.Tuple([b.emit(relax.op.negative(a)), a, x]))

    graph = partition(legal((4,), body, dataflow=False)).regions[0].graph
    assert [b.kind for b in graph.buffers] == ["input", "output", "output"]


def levels():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.call_dps_packed("stock", (a,), out_ty=R.Tensor((4,), "float32"))
                c = R.negative(b)
                d = R.sin(x)
                e = R.add(c, d)
                f = R.call_dps_packed("stock", (d,), out_ty=R.Tensor((4,), "float32"))
                g = R.add(f, e)
                R.output(g)
            return g

    return relax.transform.LegalizeOps()(Mod)


def test_levels_count_the_ways_out_and_back():
    found = partition(levels())
    assert [[v.name for v in r.bindings] for r in found.regions] == [["a", "d"], ["c", "e", "g"]]
    assert [name for name, _ in found.stock_calls] == ["b", "f"]
    assert kinds(found.regions[0].graph) == {"x": "input", "a": "output", "d": "output"}
    assert kinds(found.regions[1].graph)["b"] == "input"


def test_nothing_moves_across_a_call_with_side_effects():
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            a = R.exp(x)
            _ = R.call_packed("log", x, ty_args=R.Tuple)
            b = R.sin(x)
            return R.add(a, b)

    found = partition(relax.transform.LegalizeOps()(Mod))
    assert [len(r.graph.operators) for r in found.regions] == [1, 2]


def test_symbolic_shapes_stay_stock():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            with R.dataflow():
                y = R.exp(x)
                R.output(y)
            return y

    found = partition(relax.transform.LegalizeOps()(Mod))
    assert found.regions == () and "not static" in found.stock_calls[0][1]


def test_unsupported_types_and_in_place_calls_stay_stock():
    @I.ir_module
    class Mod:
        @T.prim_func(private=True, s_tir=True)
        def same(a: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.sblock("a"):
                    v = T.axis.spatial(4, i)
                    a[v] = a[v] * T.float32(2)

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Mod
            with R.dataflow():
                a = R.exp(x)
                b = R.call_tir_inplace(cls.same, (a,), inplace_indices=[0], out_ty=R.Tensor((4,), "float32"))
                c = R.astype(b, "float8_e4m3fn")
                R.output(c)
            return c

    found = partition(relax.transform.LegalizeOps()(Mod))
    assert [len(r.graph.operators) for r in found.regions] == [1]
    assert "call_tir_inplace" in found.stock_calls[0][1] and "float8" in found.stock_calls[1][1]


def test_host_functions_and_scheduled_ones_stay_stock(target):
    mod = prepare(target)(foreign())
    twice = next(v for v in mod.get_global_vars() if v.name_hint == "twice")
    mod[twice] = mod[twice].with_attr("tirx.is_scheduled", True)
    assert any("already scheduled" in reason for _, reason in partition(mod).stock_calls)


def test_a_sort_calls_the_host(target):
    found = partition(prepare(target)(build((4,), lambda b, x: b.emit(relax.op.sort(x)))))
    assert found.regions == () and "calls a host function" in found.stock_calls[0][1]


def test_a_module_without_a_relax_function_is_refused():
    with pytest.raises(ModelError, match="no Relax function"):
        partition(tvm.IRModule({}))


def test_a_function_that_returns_its_input_has_no_region():
    mod = build((4,), lambda b, x: x, dataflow=False)
    assert partition(mod).regions == ()
