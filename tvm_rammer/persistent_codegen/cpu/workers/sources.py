"""The C source of the workers, and the LLVM IR that is made of it."""

import hashlib
import pathlib
import platform

from ....device.processors import processor_text

FOLDER = pathlib.Path(__file__).parent
MADE = ("workers", "client")
"""Of each of these .c files there is a .ll file."""

HEADERS = ("registry.h", "clock.h", "workers.h", "pool.h")


def digest_of_source(name: str) -> str:
    """A digest of a C file and of all headers, which its LLVM IR carries too."""
    return hashlib.sha256(b"".join((FOLDER / n).read_bytes() for n in (*HEADERS, f"{name}.c"))).hexdigest()[:16]


def workers_text(machine: str) -> str:
    """The workers as LLVM IR, for a kind of machine (`platform.machine`); empty for this one's."""
    return _text("workers", machine)


def client_text(machine: str) -> str:
    """What a program has of them, and how its processor pauses: LLVM IR for a kind of machine, as above."""
    return _text("client", machine)


def _text(name: str, machine: str) -> str:
    return (FOLDER / f"{name}.ll").read_text(encoding="utf-8") + processor_text(machine or platform.machine())
