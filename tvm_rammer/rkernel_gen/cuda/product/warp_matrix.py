"""Matrix instructions of a warp: PTX's `ldmatrix` and `mma.sync` m16n8, as calls in TVM's IR.

TVM's own intrinsics (`ptx_legacy`) address fragments of the scope `warp`, which only its schedules make. Here fragments
are registers of a thread, in PTX's own layout (PTX ISA, "Matrix Fragments for mma.m16n8k16" and "mma.m16n8k8"):

    A  4 words: rows g, g + 8 and word t of the left, then of the right half
    B  2 words: word t of the upper, then of the lower half, column g
    C  4 sums:  row g, columns 2 t, 2 t + 1; the same of row g + 8

for g = lane / 4 and t = lane % 4. A word is two halves that are neighbours along K, so that an instruction has 16
terms, or one number of single precision, of which it reads the 19 bits of TF32: then there are 8.
"""

from dataclasses import dataclass

from tvm import tirx
from tvm.backend.cuda.op import cuda_func_call
from tvm.ir import Call, Expr, StringImm

from ....ir import ITEM_BYTES

ROWS, COLUMNS = 16, 8
"""Extents of one instruction beside its terms."""

WORD = 4
"""Bytes of a register."""

ROW_BYTES = 16
"""What `ldmatrix` reads of a row. So much lies between rows along K, too: then eight of them are in different banks."""


@dataclass(frozen=True, slots=True)
class MatrixKind:
    """Numbers whose products `mma.sync` adds up in single precision.

    Parameters
    ----------
    name : str
        What PTX calls their type.
    itemsize : int
        Bytes of one.
    """

    name: str
    itemsize: int

    @property
    def terms(self) -> int:
        """Products that one instruction adds to a sum: eight words of each operand."""
        return 8 * WORD // self.itemsize


KINDS = {
    "float16": MatrixKind("f16", 2),
    "bfloat16": MatrixKind("bf16", 2),
    "float32": MatrixKind("tf32", 4),
}
"""By the type of a product's operands."""

_LOAD = """
__device__ __forceinline__ void {name}(void* fragment, const void* row) {{
  unsigned* r = (unsigned*)fragment;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
    : "l"(__cvta_generic_to_shared(row)) : "memory");
}}
"""

_MULTIPLY = """
__device__ __forceinline__ void rammer_mma_{kind}(void* sums, const void* a, const void* b) {{
  float* c = (float*)sums;
  const unsigned *x = (const unsigned*)a, *y = (const unsigned*)b;
  asm volatile("mma.sync.aligned.m16n8k{terms}.row.col.f32.{kind}.{kind}.f32 "
    "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
    : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}}
"""

_ROUND = """
__device__ __forceinline__ float rammer_tf32(float x) {
  unsigned nearest;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(nearest) : "f"(x));
  return __uint_as_float(nearest);
}
"""


def run_of(buffer: tirx.Var, at: Expr, nbytes: int) -> Expr:
    """The address of so many bytes of a buffer, from an element on.

    That of the element alone would not do: TVM gives a buffer no more room than what it sees accessed.
    """
    return tirx.op.address_of(buffer[tirx.Ramp(at, 1, nbytes // ITEM_BYTES[str(buffer.dtype)])])


def load_matrices(fragment: Expr, row: Expr, *, transposed: bool) -> tirx.Stmt:
    """Load four matrices of eight rows of 16 bytes from shared memory.

    Parameters
    ----------
    fragment, row : Expr
        Addresses (`run_of`): of the four words that a thread gets; of a row of 16 bytes, for lane l row l % 8 of
        matrix l / 8.
    transposed : bool
        Whether the rows in memory are columns of the matrices, of halves.
    """
    name = f"rammer_ldmatrix{'_trans' if transposed else ''}"
    source = _LOAD.format(name=name, trans=".trans" if transposed else "")
    return tirx.Evaluate(cuda_func_call(name, fragment, row, source_code=source))


def multiply_add(sums: Expr, a: Expr, b: Expr, kind: MatrixKind) -> tirx.Stmt:
    """Add the product of two fragments to one of single precision.

    Parameters
    ----------
    sums, a, b : Expr
        Addresses (`run_of`) of four, four and two words.
    kind : MatrixKind
    """
    name, source = f"rammer_mma_{kind.name}", _MULTIPLY.format(kind=kind.name, terms=kind.terms)
    return tirx.Evaluate(cuda_func_call(name, sums, a, b, source_code=source))


def matrix_macs(call: Call) -> int:
    """Multiply-adds of a thread in a call: 0 where it is none that `multiply_add` makes."""
    name = call.args[0].value if call.args and isinstance(call.args[0], StringImm) else ""
    kind = next((kind for kind in KINDS.values() if name == f"rammer_mma_{kind.name}"), None)
    return 0 if kind is None else ROWS * COLUMNS * kind.terms // 32


def rounded(value: Expr) -> Expr:
    """The number of TF32 that is nearest to one of single precision."""
    return cuda_func_call("rammer_tf32", value, source_code=_ROUND, return_type="float32")
