"""Rows that read the same vectors are summed up together, and each is what it was."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, te, tirx

from tests.functions import TARGET
from tests.relay_passes.models import random
from tvm_rammer.relay_passes.passes.sums import tile_code
from tvm_rammer.relay_passes.passes.sums.tile import TileSums

from .test_vectorise import Nested, filters, module_of, own, product, transposed


def largest(x, w):
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.max(x[i, k] * w[k, j], k), "largest")


def products(x, w):
    """Of rows by two matrices in turn; the images in the first axis have the same."""
    k = te.reduce_axis((0, w.shape[1]), "k")
    return te.compute(
        (x.shape[0], x.shape[1], w.shape[2]), lambda b, i, j: te.sum(x[b, i, k] * w[i % 2, k, j], k), "products"
    )


def pixels(x, w):
    """A convolution of images, padded before."""
    c, ky, kx = (te.reduce_axis((0, n), name) for n, name in zip(w.shape[1:], ("c", "ky", "kx"), strict=True))
    n, channels, height, width = x.shape
    padded = te.compute(
        (n, channels, height + 2, width),
        lambda b, f, y, z: te.if_then_else(te.all(y >= 1, y <= height), x[b, f, y - 1, z], 0.0), "padded",
    )  # fmt: skip
    return te.compute(
        (n, w.shape[0], height, width - 2),
        lambda b, f, y, z: te.sum(padded[b, c, y + ky, z + kx] * w[f, c, ky, kx], [c, ky, kx]), "pixels",
    )  # fmt: skip


def tiles(mod) -> set[int]:
    """How many rows the tiles have."""
    found = set()

    def tile(node: tirx.SeqStmt) -> None:
        arrays = [stmt.buffer.name for stmt in node.seq if isinstance(stmt, tirx.AllocBuffer)]
        found.add(len({name.partition("_")[0] for name in arrays if name.startswith("sums")}))

    for func in mod.functions.values():
        if isinstance(func, tirx.PrimFunc):
            tvm_ffi.structural_walk(func.body, (tirx.SeqStmt, tile), order="pre")
    return found - {0}


@pytest.mark.parametrize(
    ("compute", "x_shape", "w_shape", "dtype", "of_64", "of_32"),
    [
        (product, (24,), (24, 128), "float32", {6, 4, 2, 1}, {6, 4, 2, 1}),
        (product, (50,), (50, 24), "float64", {8, 4, 2, 1}, {6, 4, 2, 1}),
        (product, (50,), (50, 91), "float32", {8, 4, 2, 1}, {6, 4, 2, 1}),
        (product, (50,), (50, 67), "float32", {8, 4, 2, 1}, {6, 4, 2, 1}),
        (product, (50,), (50, 5), "float32", {8, 4, 2, 1}, {8, 4, 2, 1}),
        (largest, (5,), (5, 12), "float32", {8, 4, 2, 1}, {8, 4, 2, 1}),
        (products, (4, 8), (2, 8, 32), "float32", {8, 4, 2, 1}, {6, 4, 2, 1}),
        (filters, (3, 30), (7, 3, 3), "float32", {7}, {6, 1}),
        (pixels, (3, 5, 18), (8, 3, 3, 3), "float32", {8}, {6, 2}),
    ],
    ids=["product", "double precision", "91 columns", "67", "5", "largest", "products", "filters", "pixels"],
)
@pytest.mark.parametrize("registers", [64, 32])
def test_tiled_rows_are_the_same(compute, x_shape, w_shape, dtype, of_64, of_32, registers, monkeypatch):
    monkeypatch.setattr(tile_code, "MOST_STEPS", 20)  # the products of 24 and 50 come in parts, which may share columns
    mod = module_of(compute, x_shape, w_shape, dtype)
    made = TileSums(registers)(mod)
    assert not tiles(mod)  # a pass changes no module that it is given
    assert tiles(made) == (of_64 if registers == 64 else of_32)
    stock, ours = (relax.VirtualMachine(tvm.compile(m, TARGET), tvm.cpu())["main"] for m in (mod, made))
    for rows in (0, 1, 6, 25):
        x, w = random(rows, *x_shape).astype(dtype), random(*w_shape, seed=1).astype(dtype)
        want, got = (f(*map(tvm.runtime.tensor, (x, w))).numpy() for f in (stock, ours))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


@pytest.mark.parametrize(
    "mod",
    [
        module_of(transposed, (24,), (128, 24)),
        own("y[r, c + 1] = T.float32(0)", "y[r, c + 1] = y[r, c + 1] + y[r, c] + x[t, c]"),
        Nested,
    ],
    ids=["columns apart", "in order", "a block within a block"],
)
def test_what_has_no_rows_for_the_same_vectors_stays(mod):
    assert not tiles(TileSums(64)(mod))
