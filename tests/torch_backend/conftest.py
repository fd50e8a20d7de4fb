"""What tests with PyTorch share; where it is not installed they are skipped, one by one."""

import pytest


@pytest.fixture(autouse=True)
def _fresh_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is an optional dependency")
    torch._dynamo.reset()
    torch.manual_seed(0)
