"""Writes a failing case as a test file that stands by itself."""

import base64
import pathlib
import re
import textwrap

import numpy as np
import onnx

from ..case import Case, ModelCase, Report, ScriptCase
from ..generate.kernels import WITH_WEIGHTS
from ..generate.scripts import script
from ..judge.compare import largest_of, unit_of
from .classes import failure_class
from .print_model import python_of_array, python_of_model

_HEAD = '''"""{title}

Found by scripts/fuzz, kind {kind}, seed {seed}: {detail}
"""

{imports}

{body}

def check():
    """The result is right, or an error of the package says why there is none."""
{check}


def test_{name}():
    """In a process of its own, for it may crash or hang."""
    done = subprocess.run([sys.executable, __file__], check=False, capture_output=True, text=True, timeout={limit})
    assert done.returncode == 0, done.stderr[-3000:]


if __name__ == "__main__":
    check()
'''

WAYS = {"ways": ("ways", "judge_way"), "sequences": ("ways", "judge_lengths"), "gpus": ("gpus", "judge_gpu")}
"""What judges the kinds of models that are run in other ways: a module and its function."""

_PROCESS = ["import subprocess", "import sys"]
_CHECKOUT = ["sys.path.insert(0, str(pathlib.Path.cwd()))  # the root of the repository"]
_RECIPE = [
    "from tests.fuzz.generate.recipe import Buffer, Function, Stage",
    "from tests.fuzz.generate.scripts import Line, Module",
    "from tests.fuzz.judge.evaluated import Evaluated",
]
"""Imports of the files that are written: of all of them, of those that need this checkout, of those with a recipe."""

_COMPARE = """got = list(got) if isinstance(got, tuple) else [got]
assert len(got) == len(WANT)
for a, b in zip(got, WANT, strict=True):
    assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    np.testing.assert_allclose(a, b, rtol=RTOL, atol=ATOL)
"""


def write_test(folder: pathlib.Path, case: Case, report: Report, want: list[np.ndarray] | None) -> pathlib.Path:
    """Write a test file and return its path.

    Parameters
    ----------
    folder : path
    case : Case
    report : Report
        What came of it.
    want : list of arrays, optional
        What the judges say, where they do.
    """
    title = failure_class(case, report)
    slug = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:60]
    make = (
        _ways
        if case.kind in WAYS
        else _model
        if isinstance(case, ModelCase)
        else _kernels
        if case.kind == "kernels"
        else _script
    )
    imports, body, check = make(case, report, want)
    text = _HEAD.format(
        title=_plain(title),
        kind=case.kind,
        seed=case.seed,
        detail=_plain(" ".join(report.detail.split())[:300]),
        imports=imports,
        body=body,
        check=textwrap.indent(check.rstrip(), "    "),
        name=slug,
        limit=60,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test_{slug}_{case.seed}.py"
    path.write_text(text, encoding="utf-8")
    return path


def _plain(text: str) -> str:
    """Text that may stand in a docstring."""
    return text.replace("\\", "/").replace('"', "'").encode("ascii", "replace").decode()


def _expected(want: list[np.ndarray] | None, feeds: dict[str, np.ndarray]) -> str:
    if want is None:
        return ""
    unit = unit_of([*want, *feeds.values()])
    arrays = "".join(f"\n    {python_of_array(a)}," for a in want)
    return f"WANT = [{arrays}\n]\nRTOL, ATOL = {unit}, {unit * largest_of(want)}\n"


def _feeds(feeds: dict[str, np.ndarray]) -> str:
    lines = "".join(f"\n    {name!r}: {python_of_array(a)}," for name, a in feeds.items())
    return f"FEEDS = {{{lines}\n}}\n"


def _recipe(case: ScriptCase) -> str:
    return f'SOURCE = """\n{script(case.recipe)}"""\n\nRECIPE = {case.recipe!r}\n\n{_feeds(case.feeds)}'


def _paragraphs(*lines: list[str]) -> str:
    """Lines of each paragraph, with an empty one between two of them."""
    return "\n\n".join("\n".join(paragraph) for paragraph in lines)


def _model(case: ModelCase, report: Report, want: list[np.ndarray] | None) -> tuple[str, str, str]:
    try:
        built = python_of_model(onnx.load_from_string(case.data))
    except Exception:
        built = None
    standard, others = [*_PROCESS, "import tempfile"], ["import numpy as np"]
    if built is not None:
        others.append("from onnx import helper, numpy_helper")
        model = f"MODEL = {built}.SerializeToString()\n"
    else:
        standard.insert(0, "import base64")
        data = "\n".join(f'    "{line}"' for line in textwrap.wrap(base64.b64encode(case.data).decode(), 100))
        model = f"MODEL = base64.b64decode(\n{data}\n)\n"
    body = "\n".join(part for part in (model, _feeds(case.feeds), _expected(want, case.feeds)) if part)
    given = "FEEDS[s.name] if s.name in FEEDS else np.zeros([2 if d == -1 else d for d in s.shape], s.dtype)"
    run = f"got = module(**{{s.name: {given} for s in module.inputs}})"
    check = (
        "with tempfile.NamedTemporaryFile(suffix='.onnx') as file:\n    file.write(MODEL)\n    file.flush()\n"
        f"    try:\n        module = tvm_rammer.compile(file.name)\n        {run}\n"
        "    except tvm_rammer.RammerError as error:\n        print('refused:', error)\n        return\n"
    )
    return (
        _paragraphs(standard, others, ["import tvm_rammer"]),
        body,
        check.replace("'", '"') + (_COMPARE if want is not None else ""),
    )


def _ways(case: ModelCase, report: Report, want: list[np.ndarray] | None) -> tuple[str, str, str]:
    """Plain results, and those of another way."""
    _, body, _ = _model(case, report, None)
    module, function = WAYS[case.kind]
    imports = _paragraphs(
        ["import pathlib", *_PROCESS],
        ["import numpy as np", "import onnx", "from onnx import helper, numpy_helper"],
        _CHECKOUT,
        ["from tests.fuzz.judge.onnx_judges import judge", f"from tests.fuzz.judge.{module} import {function}"],
    )
    check = f"""verdict = judge(onnx.load_from_string(MODEL), FEEDS)
fault = {function}({case.seed}, MODEL, FEEDS, None if isinstance(verdict, str) else verdict)
assert not fault, fault
"""
    return imports, body, check


def _kernels(case: Case, report: Report, want: list[np.ndarray] | None) -> tuple[str, str, str]:
    assert not isinstance(case, ModelCase)
    judges = ["from tests.fuzz.judge.kernels import judge_kernels", "from tests.fuzz.judge.tvm_judge import parse"]
    imports = _paragraphs(["import pathlib", *_PROCESS], ["import numpy as np"], _CHECKOUT, [*_RECIPE, *judges])
    body = _recipe(case)
    (function,), weights = case.recipe.functions, case.recipe.entry == WITH_WEIGHTS
    check = f"func, feeds = parse(SOURCE)[{function.name!r}], list(FEEDS.values())\n"
    check += f"fault = judge_kernels(func, feeds, weights={weights}, right=Evaluated(RECIPE, feeds)).fault\n"
    check += "assert not fault, fault\n"
    return imports, body, check


def _script(case: Case, report: Report, want: list[np.ndarray] | None) -> tuple[str, str, str]:
    assert not isinstance(case, ModelCase)
    imports = _paragraphs(
        ["import pathlib", *_PROCESS],
        ["import numpy as np", "import tvm", "from tvm import relax"],
        ["import tvm_rammer", "from tvm_rammer.device import host_cpu"],
        _CHECKOUT,
        _RECIPE,
    )
    body = _recipe(case)
    entry = (
        "got = tvm_rammer.compile(mod)(*FEEDS.values())\n"
        if case.recipe.entry == "compile"
        else "target = tvm.target.Target(host_cpu().target_config())\n"
        'got = run(tvm.compile(mod, target, relax_pipeline="rammer"))\n'
    )
    body += '''

def module():
    names = {"I": tvm.script.ir, "T": tvm.script.tirx, "R": tvm.script.relax}
    return tvm.script.from_source(SOURCE, extra_vars=names)


def run(executable):
    """By TVM's virtual machine."""
    result = relax.VirtualMachine(executable, tvm.cpu())["main"](*[tvm.runtime.tensor(a) for a in FEEDS.values()])
    return (result.numpy(),) if isinstance(result, tvm.runtime.Tensor) else tuple(r.numpy() for r in result)
'''
    check = (
        "mod = module()\ntry:\n"
        + textwrap.indent(entry, "    ")
        + 'except tvm_rammer.RammerError as error:\n    print("refused:", error)\n    return\n'
        + "fault = Evaluated(RECIPE, list(FEEDS.values())).fault(got if isinstance(got, tuple) else (got,))\n"
        "assert not fault, fault\n"
    )
    return imports, body, check
