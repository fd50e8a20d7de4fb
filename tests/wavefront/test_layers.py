"""Imports point one way, and scheduling needs neither TVM nor NumPy."""

import ast
import pathlib
import subprocess
import sys

import pytest

import tvm_rammer.errors

PACKAGE = pathlib.Path(tvm_rammer.errors.__file__).parent
STAGES = {"relay_passes", "rkernel_gen", "wavefront", "persistent_codegen"}
BASE = {"errors", "debug", "ir", "device"}
TOP = {
    "ablations",
    "bench",
    "cli",
    "compilation",
    "driver",
    "gpu_bundle",
    "module",
    "pipeline",
    "race",
    "regions",
    "report",
    "startup",
    "tuning",
    "__main__",
}


def imported(source: str, module: tuple[str, ...]) -> set[str]:
    """The parts of this package (`ir`, `wavefront`, ...) that a module's source imports, at any depth of it.

    `module` is its path in the package, `("wavefront", "verify")`, with `"__init__"` for a package itself.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        names: list[list[str]] = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["tvm_rammer", *module][: len(module) + 1 - node.level] if node.level else []
            path = base + (node.module.split(".") if node.module else [])
            names = [[*path, alias.name] for alias in node.names]
        found |= {name[1] for name in names if name[0] == "tvm_rammer" and len(name) > 1}
    return found


def modules(part: str) -> list[pathlib.Path]:
    path = PACKAGE / part
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def imports_of(part: str) -> set[str]:
    return {
        name
        for path in modules(part)
        for name in imported(path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).with_suffix("").parts)
    }


def test_imports_are_found_in_every_form() -> None:
    source = """
import tvm_rammer.driver
from tvm_rammer import ir
from ..device import DeviceSpec
def late():
    from ..rkernel_gen.tuning import tune
    from . import cost
    from .. import errors
    from .simulate import simulate
    import numpy
"""
    expected = {"driver", "ir", "device", "rkernel_gen", "errors", "wavefront"}
    assert imported(source, ("wavefront", "verify")) == expected
    assert imported("from .schedule import schedule", ("wavefront", "__init__")) == {"wavefront"}
    assert imported("from ...ir import RTask", ("wavefront", "policies", "ios")) == {"ir"}


def test_the_base_imports_in_its_order_only() -> None:
    assert imports_of("errors") == set()
    assert imports_of("debug") <= {"errors"}
    assert imports_of("ir") <= {"errors", "debug"}
    assert imports_of("device") <= {"errors", "debug", "ir"}


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_stages_import_neither_each_other_nor_what_drives_them(stage: str) -> None:
    assert modules(stage)
    assert imports_of(stage) & (STAGES | TOP) <= {stage}


def test_wavefront_imports_the_base_only() -> None:
    assert imports_of("wavefront") == {"wavefront", "errors", "ir", "device"}


def test_the_verifier_shares_no_code_with_what_makes_plans() -> None:
    modules_of_it = {"verify", "verify_execution", "verify_order", "verify_regions"}
    allowed = {"ir", "errors"} | modules_of_it
    for name in modules_of_it:
        tree = ast.parse((PACKAGE / "wavefront" / f"{name}.py").read_text(encoding="utf-8"))
        used = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level}
        assert used and used <= allowed


@pytest.mark.parametrize("module", ["wavefront", "ir", "device", "errors", "debug"])
def test_loads_without_tvm_and_numpy(module: str) -> None:
    code = f"import sys, tvm_rammer.{module}; print(sorted({{'tvm', 'numpy', 'onnx', 'tvm_ffi'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
