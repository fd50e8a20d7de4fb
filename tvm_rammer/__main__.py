"""`python -m tvm_rammer`."""

from .cli import console

console()
