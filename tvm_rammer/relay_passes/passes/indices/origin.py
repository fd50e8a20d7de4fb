"""From which inputs of a function a value is computed: what an error says to mend."""

from tvm import relax

from ...bindings import body_blocks, leaves, named_sizes


def origin(func: relax.Function, *computed: relax.Expr) -> str:
    """The end of a message about what values are computed of; empty where they depend on no input."""
    bindings = [b for block in body_blocks(func) for b in block.bindings]
    values = {b.var: b.value for b in bindings}
    sized = {size: b.value for b in bindings for size in named_sizes(b)}
    names, todo, seen = [], list(computed), set()
    while todo:
        value = todo.pop()
        for shape in getattr(value, "args", [value]):
            sizes = relax.analysis.tir_vars_in_type(shape.ty) if isinstance(shape, relax.ShapeExpr) else ()
            todo += [sized[size] for size in sizes if size in sized]
        for leaf in leaves(value):
            if isinstance(leaf, relax.Var) and leaf not in seen:
                seen.add(leaf)
                todo += [values[leaf]] if leaf in values else []
                names += [] if leaf in values else [leaf.name]
    # Braces would be filled in by the assertion.
    told = ", ".join(repr(name) for name in sorted(names)).replace("{", "{{").replace("}", "}}")
    return f"; mend the data of {told}" if names else ""
