"""Imports point one way, and scheduling needs neither TVM nor NumPy."""

import ast
import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

import tvm_rammer.errors

PACKAGE = pathlib.Path(tvm_rammer.errors.__file__).parent
ROOT = pathlib.Path(__file__).parents[1]
STAGES = {"relay_passes", "rkernel_gen", "wavefront", "persistent_codegen"}
BASE = {"errors", "debug", "ir", "device"}
TOP = {
    "ablations",
    "benchmark",
    "cli",
    "compilation",
    "driver",
    "export",
    "gpu_bundle",
    "onnx_backend",
    "onnxruntime",
    "open_shapes",
    "report_page",
    "runtime",
    "saving",
    "startup",
    "torch_backend",
    "tuning",
    "__main__",
}
MOST_FILES = 14
"""In one folder: what a reader takes in at a glance."""


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


def module_of(path: pathlib.Path) -> tuple[str, ...]:
    """A file as a module below this package; a package is named without `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


MODULES = {module_of(path): path for path in PACKAGE.rglob("*.py")}


def edges(path: pathlib.Path) -> set[tuple[str, ...]]:
    """The modules of this package that a file imports, at any depth of it; its own packages are not counted."""
    here = path.relative_to(PACKAGE).with_suffix("").parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = (*here[: len(here) - node.level], *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                found.add((*base, alias.name) if (*base, alias.name) in MODULES else base)
    return found - {here}


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
    assert imports_of("ir") <= {"ir", "errors", "debug"}
    assert imports_of("device") <= {"device", "errors", "debug", "ir"}


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_stages_import_neither_each_other_nor_what_drives_them(stage: str) -> None:
    assert modules(stage)
    assert imports_of(stage) & (STAGES | TOP) <= {stage}


def test_wavefront_imports_the_base_only() -> None:
    assert imports_of("wavefront") == {"wavefront", "errors", "ir", "device"}


def test_the_verifier_shares_no_code_with_what_makes_plans() -> None:
    folder = PACKAGE / "wavefront" / "verify"
    allowed = {("ir",), ("errors",), ("device",)} | {("wavefront", "verify", path.stem) for path in folder.glob("*.py")}
    for path in folder.glob("*.py"):
        used = edges(path)
        assert {target[:3] for target in used} <= {t[:3] for t in allowed}, path.name


@pytest.mark.parametrize("module", ["wavefront", "ir", "device", "errors", "debug"])
def test_loads_without_tvm_and_numpy(module: str) -> None:
    code = f"import sys, tvm_rammer.{module}; print(sorted({{'tvm', 'numpy', 'onnx', 'tvm_ffi'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["driver", "onnxruntime", "saving.load", "saving.cache", "cli"])
def test_what_runs_a_module_loads_without_the_compiler(module: str) -> None:
    code = f"import sys, tvm_rammer.{module}; print(sorted({{'tvm', 'onnx'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: edges(path) & MODULES.keys() for module, path in MODULES.items()}
    done: set[tuple[str, ...]] = set()

    def visit(module: tuple[str, ...], way: tuple[tuple[str, ...], ...]) -> None:
        assert module not in way, " imports ".join(".".join(m) for m in (*way[way.index(module) :], module))
        if module not in done:
            for target in sorted(graph[module]):
                visit(target, (*way, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


@pytest.mark.parametrize("top", ["tvm_rammer", "tests", "scripts", "docs", "tuning_logs"])
def test_no_folder_holds_more_files_than_one_takes_in(top: str) -> None:
    crowded = {}
    home = PACKAGE.parent if top == "tvm_rammer" else ROOT
    for folder in [home / top, *(path for path in (home / top).rglob("*") if path.is_dir())]:
        count = sum(path.is_file() for path in folder.iterdir())
        if folder.name != "__pycache__" and count > MOST_FILES:
            crowded[str(folder.relative_to(home))] = count
    assert not crowded


def imports_for_type_checkers(path: pathlib.Path) -> dict[str, str]:
    """The names that a file imports under `if TYPE_CHECKING:`, each with its module, relative to the file."""
    blocks = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_type_checkers_see_every_public_name() -> None:
    seen = imports_for_type_checkers(PACKAGE / "__init__.py")
    assert seen == tvm_rammer._MODULE_OF
    assert sorted(seen) == sorted(tvm_rammer.__all__)


PROGRAM = """
from typing import assert_type

import tvm_rammer

device: tvm_rammer.DeviceSpec
try:
    module = tvm_rammer.compile("model.onnx", target="cpu", shapes={"x": (1, 3, 224, 224)}, explore=60)
    assert_type(module, tvm_rammer.RammerModule)
    assert_type(module.explain(), str)
    assert_type(module.rprograms, tuple[tvm_rammer.RProgram, ...])
    assert_type(tvm_rammer.profile("model.onnx", runs=3).text(), str)
    tvm_rammer.compile_together(["a.onnx", "b.onnx"], shares=[2, 1])
    tvm_rammer.compile("model.onnx", 3)  # ERROR
    tvm_rammer.compile("model.onnx", polcy="list")  # ERROR
except tvm_rammer.RammerError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_users_program_is_checked_against_the_signatures(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    path = {"MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path, env=os.environ | path
    )
    wrong = [n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# ERROR")]
    found = [
        int(line.split(":")[1])
        for line in done.stdout.splitlines()
        if line.startswith("program.py:") and ": error: " in line
    ]
    assert found == wrong, done.stdout + done.stderr


def test_every_folder_of_the_package_says_what_is_in_it() -> None:
    silent = [
        str(path.relative_to(PACKAGE.parent))
        for path in PACKAGE.rglob("__init__.py")
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent


def test_no_two_functions_or_classes_have_the_same_code() -> None:
    """One home for each thing: no top-level definition of more than three lines stands twice in the package."""
    homes: dict[str, list[str]] = {}
    for path in MODULES.values():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.end_lineno - node.lineno > 3:
                body = ast.dump(ast.Module(node.body[ast.get_docstring(node) is not None :], []))
                homes.setdefault(body, []).append(f"{path.relative_to(PACKAGE.parent)}: {node.name}")
    assert not [names for names in homes.values() if len(names) > 1]


def test_an_installed_package_has_every_file_that_is_no_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["tvm_rammer"]
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file()]
    data = [path for path in paths if path.suffix not in (".py", ".pyc")]
    assert {".c", ".h", ".ll", ".cuh", ".html", ".css", ".js"} <= {path.suffix for path in data}
    assert not [str(path) for path in data if not any(path.match(pattern) for pattern in patterns)]
