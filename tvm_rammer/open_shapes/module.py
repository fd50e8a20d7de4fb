"""A module whose shapes vary: it specialises itself on those that come."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from ..arguments import whole
from ..errors import ModelError, RammerError, ShapeError
from ..runtime.bound.binding import Binding
from ..runtime.explore import Exploration
from ..runtime.module import RammerModule
from ..runtime.tensors import TensorSpec, as_array, bind, check_input
from .any_length import AnyLengths
from .dimensions import OpenShapes, Shapes
from .signature import Declared, Signature
from .specialisations import Key, Maker, Specialisations, stock_of

MOST_SHAPES = 16
"""Specialisations that a module keeps, unless the user says how many."""

OnNewShape = Literal["compile", "stock", "error"]


class SymbolicModule(RammerModule):
    """What `tvm_rammer.compile` returns for a model with symbolic dimensions.

    It is called as any other module. For each set of shapes it compiles a module of exactly these, or takes it from the
    cache, and keeps those that were used last. Where the number of steps of its loops is open, one module serves all
    of them (`runtime.length`), for each set of other sizes. What is asked of it, such as `explain()`, it answers for
    the shapes of the last call. `inputs` and `outputs` have the extent -1 where a size is open.

    Parameters
    ----------
    signature : Signature
    shapes : OpenShapes
        Names and ranges of its dimensions.
    maker : Maker
    on_new_shape : {"compile", "stock", "error"}
        What becomes of a call with shapes that are neither ready nor in the cache: it waits; it is answered by a stock
        build of the model while another thread compiles; it is refused.
    most_shapes : int
        How many specialisations to keep.
    one_by_one : str
        Why each length of a sequence is compiled by itself; empty where one module may serve all lengths.

    Attributes
    ----------
    stock : RammerModule or None
        The stock build that answers meanwhile; None where there is none.
    """

    # RammerModule's own state is that of one plan; here each specialisation has its own.
    def __init__(
        self,
        signature: Signature,
        shapes: OpenShapes,
        maker: Maker,
        on_new_shape: OnNewShape = "compile",
        most_shapes: int = MOST_SHAPES,
        one_by_one: str = "",
    ) -> None:
        check_options(on_new_shape, most_shapes)
        self.signature, self.shapes = signature, shapes
        self.inputs = tuple(TensorSpec(d.name, _extents(shapes, d), d.dtype) for d in signature.inputs)
        self.outputs = tuple(TensorSpec(d.name, d.extents, d.dtype) for d in signature.outputs)
        self._on_new_shape = on_new_shape
        self._specialisations = Specialisations(maker, most_shapes)
        self.stock = stock_of(maker) if on_new_shape == "stock" else None
        self._any_length = AnyLengths(shapes, one_by_one or signature.one_by_one)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the model; any number of threads may call at the same time, with the same shapes or with others.

        Raises
        ------
        ShapeError
            The shapes do not fit the model, or are outside of its ranges; or they are new, and new ones are refused.
        ModelError, ToolError
            As for a module of static shapes.
        RammerError
            The model cannot be compiled for these shapes.
        """
        given = [
            value if hasattr(value, "shape") and hasattr(value, "__dlpack__") else as_array(value, spec)
            for value, spec in zip(bind(self.inputs, args, kwargs), self.inputs, strict=True)
        ]
        key = tuple(tuple(map(int, value.shape)) for value in given)
        module = self._find(key) or self._of_new_shape(key, given)
        return module(*given)

    def bind(
        self,
        inputs: Mapping[str, np.ndarray[Any, Any]] | None = None,
        outputs: Mapping[str, np.ndarray[Any, Any]] | None = None,
        *,
        states: Mapping[str, str] | None = None,
    ) -> Binding:
        """Bind the module of some shapes, those of the arrays, which is compiled now if need be.

        Parameters
        ----------
        inputs, outputs, states
            As for a module of static shapes; an array for each input of which a dimension is open.

        Raises
        ------
        ShapeError
            The arrays leave a dimension open, or do not fit the model.
        ModelError, RammerError
            As for `RammerModule.bind` and `prepare`.
        """
        known = inputs if isinstance(inputs, Mapping) else {}  # the module says what is no mapping
        shapes = {name: np.shape(array) for name, array in known.items()}
        return self.prepare(shapes).bind(inputs, outputs, states=states)

    def explain(self) -> str:
        """Tell what the shapes that were used last became, and for which shapes that was compiled."""
        ready = self.modules
        told = ready[-1].explain() if ready else super().explain()
        why = self._any_length.why_none()
        return f"{told}\nEach set of shapes is compiled by itself: {why}." if why else told

    def prepare(self, shapes: Mapping[str, int | Sequence[int]]) -> RammerModule:
        """Compile the model for some shapes now, or take it from the cache.

        Parameters
        ----------
        shapes : mapping of str to int or sequence of int
            Shapes of inputs, or sizes of symbolic dimensions, by name, so that no dimension remains open.

        Returns
        -------
        RammerModule
            Of static shapes: it can be called, saved and explained by itself.

        Raises
        ------
        ShapeError
            They do not fit the model, are outside of its ranges, or leave a dimension open.
        RammerError
            The model cannot be compiled for these shapes.
        """
        static = self.shapes.bind(shapes)
        key = self._key(static)
        return self._find(key) or self._make(key, static)

    def find(self, shapes: Mapping[str, int | Sequence[int]]) -> RammerModule | None:
        """As `prepare`, but None where nothing is compiled for these shapes, neither here nor in the cache."""
        static = self.shapes.bind(shapes)
        return self._load(self._key(static), static)

    def wait(self) -> None:
        """Wait until no specialisation is being compiled."""
        self._specialisations.wait()

    @property
    def modules(self) -> tuple[RammerModule, ...]:
        """The specialisations that are ready, the one that was used last at the end."""
        return self._specialisations.modules

    @property
    def exploration(self) -> Exploration:
        """The plans of the specialisation that was used last.

        Raises
        ------
        ShapeError
            There is none yet.
        """
        ready = self.modules
        if not ready:
            raise ShapeError(
                f"nothing is compiled yet, since {self._open()} are open; call the module, or prepare() shapes"
            )
        return ready[-1].exploration

    def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """A file holds one set of shapes.

        Raises
        ------
        ShapeError
            Always; says how to save a specialisation.
        """
        raise ShapeError(
            f"{os.fspath(path)!r} can hold a model of static shapes only, and {self._open()} are open; save one "
            f"specialisation, as in module.prepare(shapes).save(path), or fill the cache by `tvm-rammer warm`"
        )

    def export_library(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """A library holds one set of shapes; raises as `save`."""
        return self.save(path)

    def _of_new_shape(self, key: Key, given: Sequence[Any]) -> RammerModule:
        """The module that answers a call of shapes that are not ready."""
        for value, spec in zip(given, self.inputs, strict=True):
            if isinstance(value, np.ndarray):  # before anything is compiled for it
                check_input(value, TensorSpec(spec.name, value.shape, spec.dtype))
        shapes = self.shapes.bind(dict(zip((spec.name for spec in self.inputs), key, strict=True)))
        if self._on_new_shape == "compile":
            return self._make(key, shapes)
        module = self._load(key, shapes)
        if module is not None:
            return module
        if self._on_new_shape == "error":
            told = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
            raise ShapeError(
                f"the shapes {told} were not prepared, and on_new_shape is 'error'; prepare() them, fill the cache by "
                f"`tvm-rammer warm`, or give on_new_shape='compile'"
            )
        if self.stock is None:
            return self._make(key, shapes)
        self._specialisations.make_meanwhile(key, shapes)
        return self.stock

    def _find(self, key: Key) -> RammerModule | None:
        """The module of some shapes, if it is ready."""
        for length in self._any_length:
            found = length.key(key)
            if found is not None and (module := self._specialisations.find(found)):
                return module
        return self._specialisations.find(key)

    def _make(self, key: Key, shapes: Shapes) -> RammerModule:
        """The module of some shapes: of any length where there can be one."""
        if (found := self._load(key, shapes)) is not None:
            return found
        for length in self._any_length if _has_elements(shapes) else ():
            wanted = length.of_call(shapes)
            if self._any_length.may_serve(wanted[0]):
                try:
                    module = self._specialisations.make(*wanted)
                except RammerError as error:  # what is wrong with every length is found again
                    self._any_length.fails(length, wanted[0], error)
                else:
                    self._any_length.serves(length)
                    return module
        return self._specialisations.make(key, shapes)

    def _load(self, key: Key, shapes: Shapes) -> RammerModule | None:
        """The module of some shapes, if it is ready or in the cache."""
        for length in self._any_length if _has_elements(shapes) else ():
            if (module := self._specialisations.load(*length.of_call(shapes))) is not None:
                self._any_length.serves(length)
                return module
        return self._specialisations.load(key, shapes)

    def _key(self, shapes: Shapes) -> Key:
        return tuple(shapes[spec.name] for spec in self.inputs)

    def _open(self) -> str:
        return f"its dimensions {', '.join(self.shapes.symbols)}" if self.shapes.symbols else "some of its dimensions"


def _has_elements(shapes: Shapes) -> bool:
    """Whether all inputs have elements: a loop has one step at least."""
    return all(all(shape) for shape in shapes.values())


def as_static(module: RammerModule) -> RammerModule:
    """A module of static shapes.

    Raises
    ------
    ShapeError
        It leaves dimensions open; says which.
    """
    return module.prepare({}) if isinstance(module, SymbolicModule) else module


def check_options(on_new_shape: object, most_shapes: object) -> None:
    """Find out whether options of a module of open shapes have a sense.

    Raises
    ------
    ModelError
        They have none.
    """
    if on_new_shape not in get_args(OnNewShape):
        raise ModelError(f"on_new_shape is {on_new_shape!r}; give 'compile', 'stock' or 'error'")
    whole("most_shapes", most_shapes, 1)


def _extents(shapes: OpenShapes, declared: Declared) -> tuple[int, ...]:
    axes = shapes.axes[declared.name]
    return tuple(-1 if axis.size is None else axis.size for axis in axes or ())
