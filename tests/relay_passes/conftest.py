"""A well-formedness check after every pass of every test here."""

import pytest
import tvm
from tvm import relax
from tvm.relax.ir.instrument import WellFormedInstrument


@pytest.fixture(autouse=True)
def well_formed():
    """Check what each pass makes, which is what the next one gets."""
    with tvm.transform.PassContext(instruments=[WellFormedInstrument(validate_before_transform=False)]):
        yield


@pytest.fixture
def target():
    """A small CPU target."""
    return tvm.target.Target({"kind": "llvm", "num-cores": 2})


@pytest.fixture
def run():
    """Compile a module with stock TVM and call its main on arrays; returns NumPy arrays.

    LLVM does not optimise: what is tested are passes before it.
    """

    def call(mod, *arrays):
        with tvm.transform.PassContext():
            executable = tvm.compile(mod, tvm.target.Target({"kind": "llvm", "opt-level": 0}))
        result = relax.VirtualMachine(executable, tvm.cpu())["main"](*[tvm.runtime.tensor(a) for a in arrays])
        return _to_numpy(result)

    return call


def _to_numpy(value):
    return value.numpy() if hasattr(value, "numpy") else [_to_numpy(item) for item in value]
