"""The file of a saved model: a shared library, and behind its end an archive of what this package knows of the model.

The loader of libraries looks at the beginning of a file, a reader of zip archives at its end: so one file is both.
"""

import json
import os
import pathlib
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import tvm_ffi

from ..device import DeviceSpec, why_not_here
from ..errors import RammerError, SavedModelError, ToolError
from ..files import check_writable, replacing
from ..ir import Length
from ..runtime.tensors import TensorSpec
from ..runtime.tvm_runtime import tvm_version
from ..version import VERSION
from .link import link_library

if TYPE_CHECKING:
    from ..runtime.explore import Plan

FORMAT = 7
FACTS, RECORD, SOURCE = "facts.json", "compilation.pickle", "kernels.cu"
"""In the archive: what running needs, what reports need, and the text of CUDA kernels."""

_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Facts:
    """What running a saved model needs to know.

    Parameters
    ----------
    device : DeviceSpec
    inputs, outputs : tuple of TensorSpec
    stock_calls : int
        How many calls were left to stock TVM.
    functions : tuple of str
        TVM's functions that the library calls by name.
    versions : mapping of str to str
        Of this package and of TVM.
    length : Length or None
        What it learns from each call.
    grows : bool
        Whether a loop has states whose sizes change from round to round.
    """

    device: DeviceSpec
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    stock_calls: int
    functions: tuple[str, ...]
    versions: Mapping[str, str]
    length: Length | None = None
    grows: bool = False

    @staticmethod
    def of(
        plan: "Plan", inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], length: Length | None = None
    ) -> "Facts":
        """The facts of a plan that was compiled by this version."""
        called = re.findall(r"^@(\S+) packed_func;", plan.executable.as_text(), re.MULTILINE)
        functions = sorted(name for name in called if tvm_ffi.get_global_func(name, allow_missing=True) is not None)
        return Facts(
            plan.device, tuple(inputs), tuple(outputs), plan.stock_calls, tuple(functions), versions(), length,
            plan.grows,
        )  # fmt: skip


def versions() -> dict[str, str]:
    """The versions that a saved model depends on."""
    return {"tvm_rammer": VERSION, "TVM": tvm_version()}


def write_saved(path: pathlib.Path, plan: "Plan", facts: Facts) -> None:
    """Write the file of a plan.

    Raises
    ------
    ToolError
        The library cannot be linked.
    RammerError
        The file cannot be written.
    """
    from .record import to_bytes

    check_writable(path)
    with tempfile.TemporaryDirectory(prefix="rammer-") as folder:
        made = pathlib.Path(folder, "model.so")
        link_library(plan.executable, made)
        size, checksum = made.stat().st_size, _checksum(made, made.stat().st_size)
        told = {"format": FORMAT, "library_bytes": size, "library_crc32": checksum} | asdict(facts)
        told["length"] = facts.length and facts.length.text()
        with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(RECORD, to_bytes(plan.compilation))
            if plan.device.kind == "cuda":
                archive.writestr(SOURCE, plan.cuda_source())
            archive.writestr(FACTS, json.dumps(told), zipfile.ZIP_STORED)
        copy_saved(made, path)


def copy_saved(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a saved model, as a whole or not at all; raises as `replacing` does."""
    with replacing(target) as new:
        shutil.copyfile(source, new)


def copy_library(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy the library of a saved model without the archive.

    Raises
    ------
    ToolError
        It cannot be written.
    """
    size = _told(source)["library_bytes"]
    try:
        with replacing(target) as new, source.open("rb") as begin, new.open("wb") as file:
            while size:
                size -= file.write(begin.read(min(size, _CHUNK)))
    except (OSError, RammerError) as error:
        raise ToolError(str(error)) from error


def read_facts(path: pathlib.Path) -> Facts:
    """Read what a file says of its model, and find out whether it can run here.

    Raises
    ------
    SavedModelError
        There is no such file, it is no saved model, it is damaged, or it was made for another processor or by another
        version.
    """
    told = _told(path)
    try:
        facts = Facts(
            DeviceSpec(**told["device"]),
            tuple(TensorSpec(s["name"], tuple(s["shape"]), s["dtype"]) for s in told["inputs"]),
            tuple(TensorSpec(s["name"], tuple(s["shape"]), s["dtype"]) for s in told["outputs"]),
            int(told["stock_calls"]),
            tuple(map(str, told["functions"])),
            told["versions"],
            told["length"] and Length.of(told["length"]),
            bool(told["grows"]),
        )
        size, checksum = int(told["library_bytes"]), int(told["library_crc32"])
    except (KeyError, TypeError, ValueError) as error:
        raise _foreign(path) from error
    missing = why_not_here(facts.device) if facts.device.kind == "cpu" else ""
    if missing:
        raise SavedModelError(
            f"{os.fspath(path)!r} was compiled for {facts.device.arch} and cannot run here: {missing}; "
            "compile the model on this machine, or with a target that both have"
        )
    if _checksum(path, size) != checksum:
        raise SavedModelError(f"{os.fspath(path)!r} is damaged: its library has changed; save the model again")
    return facts


def read_part(path: pathlib.Path, name: str) -> bytes:
    """Read a part of the archive.

    Raises
    ------
    SavedModelError
        There is none of this name, or it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except FileNotFoundError as error:
        raise SavedModelError(f"there is no file {os.fspath(path)!r}; save the model again") from error
    # All that zipfile raises where a file is no archive, is cut off, or has other bytes than it should.
    except (OSError, KeyError, ValueError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _foreign(path) from error


def _told(path: pathlib.Path) -> dict[str, Any]:
    """What a file of this version says of itself."""
    try:
        told = json.loads(read_part(path, FACTS))
    except ValueError as error:
        raise _foreign(path) from error
    if not isinstance(told, dict) or not isinstance(told.get("versions"), dict):
        raise _foreign(path)
    by, here = told["versions"], versions()
    if told.get("format") != FORMAT or by != here:
        made, ours = (", ".join(f"{name} {version}" for name, version in v.items()) for v in (by, here))
        raise SavedModelError(
            f"{os.fspath(path)!r} was saved by {made} (format {told.get('format')}), and this is {ours} "
            f"(format {FORMAT}); compile the model again, or install the versions that it was saved by"
        )
    return told


def _foreign(path: pathlib.Path) -> SavedModelError:
    return SavedModelError(
        f"{os.fspath(path)!r} is no saved model of tvm_rammer, or it is truncated; "
        "give a file that RammerModule.save or `tvm-rammer compile -o FILE.rammer` wrote"
    )


def _checksum(path: pathlib.Path, size: int) -> int:
    """CRC-32 of the beginning of a file."""
    found = 0
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK))):
            found = zlib.crc32(chunk, found)
            size -= len(chunk)
    return found
