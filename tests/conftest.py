"""What all tests share."""

import os

import pytest

import tvm_rammer  # before TVM: it lets TVM's thread pool have all cores

assert tvm_rammer.__version__


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is remembered on disk is made anew, once for all tests, unless someone says where it is."""
    os.environ.setdefault("RAMMER_CACHE", str(tmp_path_factory.mktemp("cache")))
