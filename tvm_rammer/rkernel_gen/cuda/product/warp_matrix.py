"""Matrix instructions of a warp: PTX's `ldmatrix` and `mma.sync` m16n8k16, as calls in TVM's IR.

TVM's own intrinsics (`ptx_legacy`) address fragments of the scope `warp`, which only its schedules make. Here fragments
are registers of a thread, in PTX's own layout (PTX ISA, "Matrix Fragments for mma.m16n8k16"):

    A  8 halves: rows g, g + 8 and columns 2 t, 2 t + 1 of the left, then of the right half
    B  4 halves: rows 2 t, 2 t + 1 of the upper, then of the lower half, column g
    C  4 sums:   row g, columns 2 t, 2 t + 1; the same of row g + 8

for g = lane / 4 and t = lane % 4.
"""

from tvm import tirx
from tvm.backend.cuda.op import cuda_func_call
from tvm.ir import Expr

ROWS, COLUMNS, TERMS = 16, 8, 16
"""Extents of one instruction."""

_LOAD = """
__device__ __forceinline__ void {name}(void* fragment, const void* row) {{
  unsigned* r = (unsigned*)fragment;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
    : "l"(__cvta_generic_to_shared(row)) : "memory");
}}
"""

_MULTIPLY = """
__device__ __forceinline__ void rammer_mma_{kind}(float* c, const void* a, const void* b) {{
  const unsigned *x = (const unsigned*)a, *y = (const unsigned*)b;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 "
    "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
    : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}}
"""

KINDS = {"float16": "f16", "bfloat16": "bf16"}
"""What PTX calls the types whose products `mma.sync` adds up in single precision."""


def load_matrices(fragment: Expr, row: Expr, *, transposed: bool) -> tirx.Stmt:
    """Load four 8 x 8 matrices of halves from shared memory.

    Parameters
    ----------
    fragment, row : Expr
        Elements: the first of the eight that a thread gets; that at which a row begins, for lane l row l % 8 of
        matrix l / 8.
    transposed : bool
        Whether the rows in memory are columns of the matrices.
    """
    name = f"rammer_ldmatrix{'_trans' if transposed else ''}"
    source = _LOAD.format(name=name, trans=".trans" if transposed else "")
    address = tirx.op.address_of
    return tirx.Evaluate(cuda_func_call(name, address(fragment), address(row), source_code=source))


def multiply_add(sums: Expr, a: Expr, b: Expr, dtype: str) -> tirx.Stmt:
    """Add the product of two fragments of 16-bit numbers to one of single precision; all by their first elements.

    Parameters
    ----------
    sums, a, b : Expr
    dtype : str
        Of the numbers, one of `KINDS`.
    """
    name, source = f"rammer_mma_{KINDS[dtype]}", _MULTIPLY.format(kind=KINDS[dtype])
    address = tirx.op.address_of
    return tirx.Evaluate(cuda_func_call(name, address(sums), address(a), address(b), source_code=source))
