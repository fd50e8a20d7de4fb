"""Sums of products of bytes that one instruction adds to each element of a vector of int32, for TVM's `tensorize`.

With AVX512-VNNI four unsigned bytes times four signed ones (`vpdpbusd`); on any other x86 two, widened to 16 bits
(`pmaddwd`, `paddd`): the data once an rTask, ahead, so that a pair comes by one load to all elements of a vector, the
weights as they are read. All sums are exact.
"""

from functools import cache

from tvm import s_tir, tirx
from tvm.ir import Expr
from tvm.script import tirx as T

_QUADS = {n: f"llvm.x86.avx512.vpdpbusd.{32 * n}" for n in (4, 8, 16)}
"""By the elements of a vector."""
_PAIRS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}


def has_dot(dot: int, simd: int) -> bool:
    """Whether there is an instruction for `dot` products an element, in vectors of `simd` elements of int32."""
    return simd in {4: _QUADS, 2: _PAIRS}.get(dot, {})


def data_type(dot: int) -> str:
    """Of the data that the instruction reads: what was unsigned bytes."""
    return "uint8" if dot == 4 else "int16"


@cache
def dot_intrinsic(dot: int, simd: int) -> str:
    """Register the instruction, and return its name.

    Parameters
    ----------
    dot : {2, 4}
        Products that are added to an element.
    simd : int
        Elements of the accumulator.
    """
    name = f"rammer_dot_{dot}x{simd}"
    s_tir.TensorIntrin.register(name, _meaning(dot, simd), _code(dot, simd), override=True)
    return name


def _meaning(dot: int, simd: int) -> tirx.PrimFunc:
    """What the instruction computes; wide data are read as the schedule reads them, as the bytes that they were."""
    data = data_type(dot)

    def number(element: Expr) -> Expr:
        return T.Cast("int32", element if data == "uint8" else T.Cast("uint8", element))

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]  # TVM's are
    def meaning(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (dot,), data, offset_factor=1)
        B = T.match_buffer(b, (simd, dot), "int8", offset_factor=1)
        C = T.match_buffer(c, (simd,), "int32", offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(C[0:simd], A[0:dot], B[0:simd, 0:dot])
            T.writes(C[0:simd])
            for i in range(simd):
                for k in range(dot):
                    with T.sblock("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        C[vi] = C[vi] + number(A[vk]) * T.Cast("int32", B[vi, vk])

    return meaning


def _code(dot: int, simd: int) -> tirx.PrimFunc:
    """The same as one vector."""

    def update(old: Expr, data: Expr, weights: Expr) -> Expr:
        return _quads(simd, old, data, weights) if dot == 4 else _pairs(simd, old, data, weights)

    size, kind = dot * simd, data_type(dot)

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def code(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (dot,), kind, offset_factor=1)
        B = T.match_buffer(b, (simd, dot), "int8", offset_factor=1, strides=[dot, 1])
        C = T.match_buffer(c, (simd,), "int32", offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(C[0:simd], A[0:dot], B[0:simd, 0:dot])
            T.writes(C[0:simd])
            C[T.ramp(0, 1, simd)] = update(
                C.vload([0], f"int32x{simd}"), A.vload([0], f"{kind}x{dot}"), B.vload([0, 0], f"int8x{size}")
            )

    return code


def _quads(simd: int, old: Expr, data: Expr, weights: Expr) -> Expr:
    each = tirx.reinterpret(f"uint8x{4 * simd}", tirx.Broadcast(tirx.reinterpret("int32", data), simd))
    return tirx.call_llvm_pure_intrin(f"int32x{simd}", _QUADS[simd], old, each, weights)


def _pairs(simd: int, old: Expr, data: Expr, weights: Expr) -> Expr:
    pair = tirx.reinterpret("int32", data)
    each = tirx.reinterpret(f"int16x{2 * simd}", tirx.Broadcast(pair, simd))
    wide = tirx.Cast(f"int16x{2 * simd}", weights)
    return old + tirx.call_llvm_pure_intrin(f"int32x{simd}", _PAIRS[simd], each, wide)
