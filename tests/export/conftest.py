"""A project that several tests build with programs of their own."""

import pytest

from tests.emulation.projects import build_project
from tvm_rammer.export.project import export_project
from tvm_rammer.zoo.lstm_stack import lstm_stack

from .small import request


@pytest.fixture(scope="package")
def lstm(tmp_path_factory):
    """A project of one region, and its program for the emulation."""
    folder = export_project(request(lstm_stack(2, 2, 32)), tmp_path_factory.mktemp("lstm") / "lstm", "lstm")
    return folder, build_project(folder)
