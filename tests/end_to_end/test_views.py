"""Mixtures of copies and computations, with views and without: the same bits, and what the interpreter says."""

from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

import tvm_rammer
from tests.marks import slow_but
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import KernelizedModule, find_regions, plan_regions
from tvm_rammer.compilation.stages import build
from tvm_rammer.device import DeviceSpec, host_cpu
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks
from tvm_rammer.relay_passes import prepare
from tvm_rammer.zoo.inception_module import inception_module

TARGET = tvm.target.Target(host_cpu().target_config() | {"opt-level": 0})


def random_module(seed: int, size: int = 10) -> tvm.IRModule:
    """A function of two inputs: matrix products, and concatenations, splits, slices and other shapes of their results.

    Rows are of 16 or 20 elements, so that some parts begin at multiples of 64 bytes and some do not.
    """
    rng = np.random.default_rng(seed)
    width = int(rng.choice([16, 20]))
    params = [relax.Var(n, relax.TensorType((rows, width), "float32")) for n, rows in (("x", 4), ("y", 8))]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            values: list[relax.Expr] = list(params)
            unread: dict[relax.Expr, None] = {}

            def add(expr: relax.Expr) -> relax.Var:
                values.append(builder.emit(expr))
                unread[values[-1]] = None
                return values[-1]

            def product(value: relax.Expr) -> relax.Expr:
                weight = (rng.standard_normal((width, width)) / width).astype("float32")
                return op.matmul(value, relax.const(weight, "float32"))

            for _ in range(size):
                a, b = values[rng.integers(max(0, len(values) - 4), len(values))], values[rng.integers(len(values))]
                unread.pop(a, None)
                rows, more = (int(v.ty.shape[0]) for v in (a, b))
                match rng.choice(["product", "product", "concat", "concat", "split", "slice", "shape"]):
                    case "concat" if rows + more <= 40 and a is not b:
                        unread.pop(b, None)
                        add(op.concat([a, b], axis=0))
                    case "split" if rows % 2 == 0:
                        halves = builder.emit(op.split(a, 2, axis=0))
                        add(halves[0]), add(halves[1])
                    case "slice" if rows > 1:
                        add(op.strided_slice(a, [0], [int(rng.integers(0, rows - 1))], [rows]))
                    case "shape":
                        add(op.reshape(product(op.reshape(a, (1, rows, width))), (rows, width)))
                    case _:
                        add(product(a))
            results = [value if rng.random() < 0.15 else builder.emit(product(value)) for value in unread]
            out = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(out)
    return builder.get()


def kernelized(mod: tvm.IRModule, device: DeviceSpec) -> tuple[KernelizedModule, Compilation]:
    """A module with one kernel for each function, so that all plans of it compute the same."""
    record = Compilation(device)
    module = find_regions(prepare(TARGET)(mod), record)
    record.kernels = {name: made[:1] for name, made in record.kernels.items()}
    return module, record


def results(module: KernelizedModule, record: Compilation, arrays: list[np.ndarray]) -> list[np.ndarray]:
    main = relax.VirtualMachine(build(module, record), tvm.cpu())["main"]
    return [t.numpy() for t in main(*map(tvm.runtime.tensor, arrays))]


CHEAP_LAUNCHES = {"launch_us": 0.0, "signal_us": 50.0, "barrier_us": 50.0}


@pytest.mark.parametrize("seed", slow_but(range(4), range(20)))
def test_views_change_no_bit(seed: int) -> None:
    device = replace(host_cpu(), units=3, **(CHEAP_LAUNCHES if seed % 2 else {}))
    module, with_views = kernelized(random_module(seed), device)
    without = replace(with_views.for_policy("wavefront", with_views.kernels), copies={})
    for record in (with_views, without):
        plan_regions(module, record)
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((rows, int(s))).astype("float32") for rows, s in _shapes(module)]
    got, want = results(module, with_views, arrays), results(module, without, arrays)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    if len(with_views.programs) == 1 and len(module.partition.regions) == 1:
        _check_by_reference(module, with_views, arrays, got)


def _shapes(module: KernelizedModule) -> list[tuple[int, int]]:
    return [tuple(int(n) for n in p.ty.shape) for p in module.mod["main"].params]


def _check_by_reference(
    module: KernelizedModule, record: Compilation, arrays: list[np.ndarray], compiled: list[np.ndarray]
) -> None:
    """In random orders, byte for byte at the planned addresses."""
    (program,), (region,) = record.programs, module.partition.regions
    by_name = {k.spec.name: k for made in module.kernels.values() for k in made}
    kernels = [by_name[k.name] for k in program.kernels]
    values = dict(zip(("x", "y"), arrays, strict=True)) | {
        b.name: e.value.numpy()
        for b, e in zip(region.graph.buffers, region.buffer_exprs, strict=True)
        if b.kind == "constant"
    }
    rtasks = compile_rtasks(kernels, record.device)
    for seed in range(2):
        got = interpret(program, rtasks, values, packs=[k.packs for k in kernels], seed=seed)
        for array in got.values():
            assert any(array.shape == want.shape and np.allclose(array, want, rtol=1e-5) for want in compiled)


def test_the_random_modules_lose_copies_of_all_kinds() -> None:
    lost, stay = set(), set()
    for seed in range(6):
        module, record = kernelized(random_module(seed), host_cpu())
        plan_regions(module, record)
        there = {o.name for p in record.programs for o in p.graph.operators}
        for graph in record.graphs:
            for o in graph.operators:
                if o.function in record.copies:
                    kind = next(k for k in ("concat", "split", "slice", "reshape") if k in o.function)
                    (stay if o.name in there else lost).add(kind)
    assert lost >= {"concat", "split", "slice"}
    assert stay


@pytest.fixture(scope="module")
def inception() -> tvm_rammer.RammerModule:
    return tvm_rammer.compile(inception_module(0, channels=16, size=8, widths=(8, 8, 16, 4, 8, 8)))


def test_what_is_left_out_is_reported(inception: tvm_rammer.RammerModule) -> None:
    facts = inception.report()
    assert (facts["roperators"], facts["views"], facts["stock_launches"]) == (6, 2, 8)
    assert "Of the calls 2 would only copy" in inception.explain()
    assert "concatenate" not in inception.schedule_svg()


def test_branches_write_straight_into_the_output_and_read_parts_where_they_were_made(
    inception: tvm_rammer.RammerModule,
) -> None:
    (program,) = inception.compilation.programs
    views = [program.graph.buffers[b.place.base].kind for b in program.graph.buffers if b.place]
    assert sorted(views) == ["intermediate"] * 2 + ["output"] * 4
