"""A Relax module or a torch program -> a Relax module whose "main" has static shapes."""

from typing import Any

import tvm
from tvm import relax, tirx

from ..errors import ModelError, ShapeError, first_line
from .onnx.shapes import Shapes, check_given, remedy

_PIPELINE = "compile it by tvm.compile(mod, target, relax_pipeline='rammer'), and call it in TVM's virtual machine"


def static_relax(mod: tvm.IRModule, shapes: Shapes | None = None) -> tvm.IRModule:
    """Copy a module and bind the symbolic dimensions of its function "main".

    Parameters
    ----------
    mod : tvm.IRModule
        Is not changed.
    shapes : mapping of str to int or sequence of int, optional
        Static shapes of parameters, and sizes of symbolic dimensions, by name.

    Raises
    ------
    ModelError
        There is no Relax function "main", or something that it takes or returns is no tensor.
    ShapeError
        A parameter's shape remains open, or a given shape does not fit.
    """
    names = [var.name_hint for var in mod.get_global_vars()]
    if "main" not in names or not isinstance(mod["main"], relax.Function):
        raise ModelError(f"the module has no Relax function 'main', only {names}; rename the one to be compiled")
    mod = mod.clone()
    params = {param.name: param for param in mod["main"].params}
    open_dims = {dim.name: dim for param in mod["main"].params for dim in _open_dims(param.ty)}
    given, sizes = check_given(shapes, list(params), open_dims)
    bound: dict[tirx.Var, int] = {open_dims[symbol]: size for symbol, size in sizes.items()}
    for name, shape in given.items():
        _match(name, params[name].ty, shape, bound)
    if bound:
        mod = relax.transform.BindSymbolicVars(bound, "main")(mod)
    _check_result(mod["main"].ret_ty)
    for param in mod["main"].params:
        _check_static(param.name, param.ty)
        if param.name in given and _sizes(param.ty) != list(given[param.name]):
            raise ShapeError(
                f"parameter {param.name!r} has the shape {_show(params[param.name].ty)}, which {given[param.name]} "
                f"does not fit; give {_show(param.ty)}"
            )
    return mod


def import_torch(program: Any) -> tvm.IRModule:
    """Import a torch.export program by TVM's frontend; its weights become constants, its open dimensions stay open.

    Raises
    ------
    UnsupportedOperatorError, ModelError
        The frontend lacks an operator, or fails.
    """
    try:
        from .aten.importer import import_program
    except ImportError as error:
        raise ModelError(
            f"TVM's torch frontend cannot import the program: {first_line(error)}; pip install torch==2.13.0"
        ) from error
    return import_program(program)


def _match(name: str, ty: tvm.ir.Type, sizes: tuple[int, ...], bound: dict[tirx.Var, int]) -> None:
    if not isinstance(ty, relax.TensorType):
        raise ShapeError(f"a shape is given for {name!r}, which is not a tensor but {ty}; leave it out")
    if ty.ndim not in (-1, len(sizes)):
        raise ShapeError(
            f"parameter {name!r} has the shape {_show(ty)}, of rank {ty.ndim}, but {sizes} is given; "
            f"give {ty.ndim} sizes"
        )
    if not isinstance(ty.shape, relax.ShapeExpr):
        return
    for dim, size in zip(ty.shape, sizes, strict=True):
        if isinstance(dim, tirx.Var) and bound.setdefault(dim, size) != size:
            raise ShapeError(
                f"the dimension {dim.name!r} of parameter {name!r} is {size} here and {bound[dim]} elsewhere; "
                f"give one value to all that share it"
            )


def _check_static(name: str, ty: tvm.ir.Type) -> None:
    if isinstance(ty, relax.ShapeType):
        raise ShapeError(f"parameter {name!r} is a shape, {ty}; only tensors of static shapes can be inputs")
    if not isinstance(ty, relax.TensorType):
        raise ModelError(f"parameter {name!r} is no tensor but {ty}; {_PIPELINE}")
    if _sizes(ty) is None:
        known = [int(d) if isinstance(d, tirx.IntImm) else 1 for d in ty.shape] if _has_shape(ty) else [1] * 4
        raise ShapeError(f"parameter {name!r} has no static shape but {_show(ty)}; {remedy(name, known)}")


def _check_result(ty: tvm.ir.Type) -> None:
    if isinstance(ty, relax.TupleType):
        for field in ty.fields:
            _check_result(field)
    elif not isinstance(ty, relax.TensorType):
        raise ModelError(f"main returns {ty}, which is no tensor; {_PIPELINE}")


def _open_dims(ty: tvm.ir.Type) -> list[tirx.Var]:
    if isinstance(ty, relax.TupleType):
        return [dim for field in ty.fields for dim in _open_dims(field)]
    return [dim for dim in ty.shape if isinstance(dim, tirx.Var)] if _is_shaped(ty) else []


def _is_shaped(ty: tvm.ir.Type) -> bool:
    return isinstance(ty, relax.TensorType) and _has_shape(ty)


def _has_shape(ty: relax.TensorType) -> bool:
    return isinstance(ty.shape, relax.ShapeExpr)


def _sizes(ty: tvm.ir.Type) -> list[int] | None:
    if not _has_shape(ty) or not all(isinstance(d, tirx.IntImm) for d in ty.shape):
        return None
    return [int(d) for d in ty.shape]


def _show(ty: tvm.ir.Type) -> str:
    if not isinstance(ty, relax.TensorType) or not _has_shape(ty):
        return str(ty)
    return f"({', '.join(str(int(d)) if isinstance(d, tirx.IntImm) else str(d) for d in ty.shape)})"
