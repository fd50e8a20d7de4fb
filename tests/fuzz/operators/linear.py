"""Matrix products."""

from ..generate.builder import Builder, words

_EQUATIONS = words(
    "ij,jk->ik ij,kj->ki ij,jk bij,bjk->bik bij,bkj->bki ii->i ij->ji ij-> ij->j i,j->ij i,i-> "
    "bij,jk->bik ...ij,...jk->...ik bhqd,bhkd->bhqk ij,ij->ij ij,j->i abc->cba ij,jk,kl->il ij,jk "
    "bii->bi ba iij,jk->ik Ab,bA->bA ...i->... ,ij->ij "
)


def matmul(b: Builder):
    x = b.source(b.types("MatMul"), low=1)
    shape, dtype = b.of(x), b.values[x].dtype
    columns = [] if b.chance(0.15) else [b.extent()]
    batch = [1 if b.chance(0.3) else d for d in shape[:-2]][b.integer(0, 2) if b.chance(0.5) else 0 :]
    if not columns:
        batch = []
    if columns and len(shape) < 4 and b.chance(0.15):
        batch = [b.integer(1, 3), *([1 if d > 1 and b.chance(0.5) else d for d in shape[:-2]])]
    y = b.parameter(dtype, [*batch, shape[-1], *columns])
    return b.add("MatMul", [x, y])


def gemm(b: Builder):
    a = b.source(b.types("Gemm"), low=2, high=2)
    dtype, across = b.values[a].dtype, b.integer(0, 1)
    rows, inner = b.of(a)[::-1] if across else b.of(a)
    columns, flip = b.extent(), b.integer(0, 1)
    inputs = [a, b.parameter(dtype, [columns, inner] if flip else [inner, columns])]
    if b.opset < 11 or b.chance(0.7):
        shapes = [[rows, columns], [columns], [1, columns], [rows, 1], [1], []]
        inputs.append(b.parameter(dtype, b.pick(shapes)))
    factors = {k: round(b.rng.uniform(-2, 2), 3) for k in ("alpha", "beta") if b.chance(0.4)}
    factors = factors if dtype.startswith(("float", "bfloat")) else {}
    return b.add("Gemm", inputs, transA=across or None, transB=flip or None, **factors)


def einsum(b: Builder):
    equation = b.pick(_EQUATIONS)
    dtype = b.pick(["float32", "float32", "float64", "int32"])
    extents: dict[str, int] = {}
    inputs = []
    for term in equation.split("->")[0].split(","):
        for letter in term.replace("...", ""):
            extents.setdefault(letter, b.integer(1, 7))
        shape = [2] * ("..." in term) + [extents[letter] for letter in term.replace("...", "")]
        inputs.append(b.source([dtype], shape=shape, high=5))
    return b.add("Einsum", inputs, equation=equation)


def det(b: Builder):
    side = b.integer(1, 4)
    return b.add("Det", [b.source(b.types("Det"), shape=[*b.shape(0, 1), side, side])])


TABLE = {"MatMul": matmul, "Gemm": gemm, "Einsum": einsum, "Det": det}
