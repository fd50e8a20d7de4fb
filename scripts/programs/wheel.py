"""Build an sdist, of that a wheel, unpack it away from the repository, and run tests there: `./scripts/run wheel
[pytest arguments]`.

The dependencies are those of .venv. Without arguments: the quick tests of what reads files of the package, or starts
processes that import it. A file that the sdist or the wheel lacks, or a test that only works beside the sources, fails.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).parents[2]
TESTS = (
    "tests/cli", "tests/gpu_bundle", "tests/persistent_codegen/cpu/test_program.py",
    "tests/persistent_codegen/cuda/test_program.py", "tests/report_page", "tests/runtime/test_calls.py",
    "tests/runtime/test_module.py", "tests/saving",
)  # fmt: skip


def main() -> int:
    """Run the tests, and return pytest's status."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return 0
    chosen = sys.argv[1:] or ["-m", "not slow", *TESTS]
    with tempfile.TemporaryDirectory(prefix="rammer-wheel-") as name:
        folder = pathlib.Path(name)
        with zipfile.ZipFile(wheel(folder)) as archive:
            archive.extractall(folder / "installed")
        for copied in ("tests", "docs", "tuning_logs"):
            shutil.copytree(ROOT / copied, folder / copied, ignore=shutil.ignore_patterns("__pycache__"))
        for copied in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / copied, folder)
        # In front of all else, so that it hides the sources that .venv is linked to.
        found = os.pathsep.join([str(folder / "installed"), str(folder)])
        where = [sys.executable, "-c", "import tvm_rammer; print(tvm_rammer.__file__)"]
        environment = os.environ | {"PYTHONPATH": found}
        place = subprocess.run(where, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout
        print(f"tests of {place.strip()}", flush=True)
        if not place.startswith(str(folder)):
            raise SystemExit("wheel: the sources are imported, not the wheel; is PYTHONPATH set somewhere else?")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


def wheel(folder: pathlib.Path) -> pathlib.Path:
    """Build an sdist of a copy of the sources, since setuptools leaves folders beside them; and of it a wheel."""
    sources, tools = folder / "sources", folder / "tools"
    shutil.copytree(ROOT / "tvm_rammer", sources / "tvm_rammer", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    # pip fetches what the build needs; .venv need not have it.
    pip = [sys.executable, "-m", "pip"]
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    subprocess.run([*pip, "install", "--quiet", "--target", str(tools), *needed], check=True)
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=sources, env=os.environ | {"PYTHONPATH": str(tools)}, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (sdist,) = folder.glob("*.tar.gz")
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(sdist)], check=True)
    (built,) = folder.glob("*.whl")
    return built


if __name__ == "__main__":
    sys.exit(main())
