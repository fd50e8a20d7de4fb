"""What a compilation decided, as bytes and back."""

import io
import pickle
from collections import Counter
from dataclasses import replace
from typing import Any

from ..compilation.record import Compilation
from ..errors import SavedModelError

_MODULES = (
    "tvm_rammer.compilation.record",
    "tvm_rammer.device.spec",
    "tvm_rammer.ir.graph",
    "tvm_rammer.ir.kernel",
    "tvm_rammer.ir.program",
    "tvm_rammer.wavefront.options",
)
"""Where the classes of a record are defined."""

_PLAIN = {("collections", "Counter"): Counter, ("builtins", "str"): str}
"""Other classes that a record holds; TVM's strings are pickled as a call of `str`."""


def to_bytes(record: Compilation) -> bytes:
    """A record without the clock that a policy may have been given."""
    if record.options is not None and record.options.clock is not None:
        record = replace(record, options=replace(record.options, seconds=None, clock=None))
    return pickle.dumps(record, protocol=5)


def from_bytes(data: bytes) -> Compilation:
    """A record again.

    Raises
    ------
    SavedModelError
        It holds something else than a record does.
    """
    try:
        record = _Unpickler(io.BytesIO(data)).load()
    except Exception as error:
        raise SavedModelError(f"a saved model's record cannot be read: {error}; compile the model again") from error
    if not isinstance(record, Compilation):
        raise SavedModelError(f"a saved model's record is a {type(record).__name__}; compile the model again")
    return record


class _Unpickler(pickle.Unpickler):
    """Makes values of the classes that a record consists of, and of no others: pickled data could call anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return _PLAIN[module, name]
        if module in _MODULES and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a record")
