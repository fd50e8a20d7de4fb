"""Every error that this package raises on purpose.

    RammerError
    ├── ModelError            the model cannot be read, or says something impossible
    │   ├── ShapeError        a dimension is symbolic and no value was given for it
    │   ├── LongLoopError     a loop has too many steps to be unrolled
    │   └── UnsupportedOperatorError   an operator that TVM's frontend cannot import
    ├── TargetError           an unknown or incomplete device
    ├── ScheduleError         a policy cannot plan this graph on this device
    │   └── VerificationError a plan breaks a rule; it is never run
    ├── LoopError             a loop cannot stay one, and is unrolled; nobody sees this error
    │   └── DataLoopError     nor can one that data end: each round of it is a call; nobody sees this error
    ├── LengthError           a length cannot be learnt at run time; each is compiled by itself; nobody sees this error
    ├── CodegenError          a kernel cannot be turned into an rTask function
    │   └── ResidencyError    the vEUs of a plan cannot all be resident at once
    ├── HangError             a kernel waited for what never came; its watchdog ended it
    ├── TuningLogError        a tuning log is missing or broken
    ├── SavedModelError       a saved model cannot be loaded: damaged, or made for another processor or version
    └── ToolError             a program that is needed (nvcc) is missing or failed
        └── MissingToolError  it is missing, or does not know the device

Each message says what is wrong, shows the value, and names the way out.
"""

import re

DATA_MARK = "rammer refuses: "
"""Begins the text of an AssertionError that compiled code raises for the data of a call: an index lies outside of what
it indexes, or they choose a branch that cannot run."""


class RammerError(Exception):
    """Base of all errors of this package."""


class ModelError(RammerError):
    """The model cannot be read, or what it says is impossible."""


class ShapeError(ModelError):
    """A shape is not static, or a given shape does not fit the model."""


class LongLoopError(ModelError):
    """A recurrent layer or a loop has too many steps to be unrolled."""


class UnsupportedOperatorError(ModelError):
    """The model holds an operator that cannot be imported."""


class TargetError(RammerError):
    """The target is unknown, or says too little about the device."""


class ScheduleError(RammerError):
    """The graph cannot be planned on this device with this policy."""


class VerificationError(ScheduleError):
    """An rProgram breaks a rule of execution; it must not run."""


class LoopError(RammerError):
    """A loop of the model cannot become an rProgram of several steps; `compile` unrolls it then."""


class DataLoopError(LoopError):
    """A loop that data end cannot become an rProgram; each of its rounds is called by itself then."""


class LengthError(RammerError):
    """A model cannot learn the length of its sequences when it runs; each length is compiled by itself then."""


class CodegenError(RammerError):
    """A kernel cannot be turned into the device function of an rTask."""


class ResidencyError(CodegenError):
    """The vEUs of an rProgram cannot all be resident on the device at once."""


class HangError(RammerError):
    """A persistent kernel waited for what never came, and its watchdog ended it."""


class TuningLogError(RammerError):
    """A tuning log is missing, or cannot be read."""


class SavedModelError(RammerError):
    """A file is no saved model, is damaged, or was made for another processor or by another version."""


class ToolError(RammerError):
    """A program that this step needs is missing, or it failed."""


class MissingToolError(ToolError):
    """A program that this step needs is not installed, or does not know the device."""


def all_subclasses(error: type[RammerError]) -> list[type[RammerError]]:
    """The classes below one of ours."""
    return [found for child in error.__subclasses__() for found in (child, *all_subclasses(child))]


def first_line(error: BaseException, width: int = 300) -> str:
    """The first line of an error's text that says something, cut to `width`."""
    return _lines(error)[0][:width].rstrip(" .;:")


def last_line(error: BaseException, width: int = 300) -> str:
    """The last such line: what went wrong, after the traces that TVM begins with."""
    return _lines(error)[-1][:width].rstrip(" .;:")


def _lines(error: BaseException) -> list[str]:
    """TVM tells all that it knows of an operator in the place of its name, and what it left out of a value."""
    text = re.sub(r"ir\.Op\(span=None.*?name=\"([\w.]+)\".*?support_level=\d+\)", r"\1", str(error))
    text = re.sub(r"\s*# Metadata omitted\..*?to show it\.\s*", " ", text)
    return [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
