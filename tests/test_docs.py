"""The Python of README and docs runs, page by page; the tutorial is followed; links and paths lead somewhere."""

import os
import pathlib
import re
import subprocess
import sys

import onnx
import pytest
from onnx import TensorProto, helper

import tvm_rammer
from tests.forking import python
from tvm_rammer.zoo.open_shapes.speech import speech
from tvm_rammer.zoo.streaming.voice_activity import voice_activity

ROOT = pathlib.Path(__file__).parents[1]

TEXTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "tuning_logs" / "README.md")
TUTORIAL = ROOT / "docs" / "guides" / "tutorial.md"
TORCH = ROOT / "docs" / "guides" / "torch.md"  # tests/torch_backend runs it
EXPORT = ROOT / "docs" / "guides" / "export.md"  # tests/export runs its C
KINDS = {"python", "sh", "text"}
"""Kinds of blocks: Python, which is run; commands, of which `test_commands.py` knows ours; what a program prints."""
MORE_KINDS = {TUTORIAL: {"console"}, EXPORT: {"c"}}
TOPS = (".ci", "docs", "scripts", "tests", "tuning_logs", "tvm_rammer")
GENERATED = {EXPORT: {"recorded/"}}
"""Paths that a page names in a folder that some command writes."""
PAGES = [path for path in TEXTS if path not in (TUTORIAL, TORCH) and "```python" in path.read_text(encoding="utf-8")]

PREAMBLE = """
import numpy as np
import onnx
import tvm
import tvm_rammer
from tvm.relax.frontend.onnx import from_onnx

model = detector = reader = onnx.load("static.onnx")
target = tvm.target.Target({"kind": "llvm", "num-cores": 2})
mod = from_onnx(onnx.load("static.onnx"), keep_params_in_input=False)
"""
"""What the pages suppose: models in the folder, and names for them."""


def blocks(page: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def prose(page: pathlib.Path) -> str:
    """The text of a page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def lost_paths(text: str) -> list[str]:
    """What a text names as a file or folder of the repository, and is none: from its root on, or the end of a path."""
    found = [path for path in ROOT.iterdir() if path.is_file() or path.name in TOPS]
    found += [path for top in TOPS for path in (ROOT / top).rglob("*")]
    paths = [path.relative_to(ROOT).parts for path in found if "__pycache__" not in path.parts]
    ends = {"/".join(parts[n:]) for parts in paths for n in range(len(parts))}
    folders = {part for parts in paths for part in parts[:-1]}
    named = [name for name in re.findall(r"`(?:\./)?([\w./-]+)`", text) if "NAME" not in name]
    like_paths = [
        name
        for name in named
        if re.search(r"\w\.(py|c|ll|cuh|h|sh)$|/$", name) or ("/" in name and name.split("/")[0] in folders)
    ]
    return [name for name in like_paths if name.rstrip("/") not in ends]


def pooled(batch, rate: bool) -> onnx.ModelProto:
    """Means of an image, perhaps times a sample rate."""
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["mean"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 224, 224])]
    if rate:
        nodes.append(helper.make_node("Cast", ["sr"], ["rate"], to=TensorProto.FLOAT))
        inputs.append(helper.make_tensor_value_info("sr", TensorProto.INT64, []))
    nodes.append(helper.make_node("Mul" if rate else "Relu", ["mean", "rate"] if rate else ["mean"], ["y"]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 3, 1, 1])]
    graph = helper.make_graph(nodes, "pooled", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page, tmp_path):
    onnx.save(pooled("batch", rate=False), tmp_path / "model.onnx")
    onnx.save(pooled(1, rate=True), tmp_path / "static.onnx")
    onnx.save(speech(frame=40, hidden=8, layers=1), tmp_path / "speech.onnx")
    onnx.save(voice_activity(samples=64, window=32, hidden=16), tmp_path / "voice.onnx")
    (tmp_path / "tuning_logs").symlink_to(ROOT / "tuning_logs")
    script = "\n".join([PREAMBLE, *blocks(page)])
    (tmp_path / "page.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [python(), "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_no_block_of_a_page_is_passed_over(page):
    """Each is of a kind that some test runs, and written as that test looks for it."""
    fences = re.findall(r"^([ >]*)(?:```|~~~)(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    opened, closed = fences[::2], fences[1::2]
    assert len(opened) == len(closed) and set(closed) <= {("", "")}
    assert {kind for _, kind in opened} <= KINDS | MORE_KINDS.get(page, set())
    assert not any(indent for indent, _ in opened)
    assert len(blocks(page)) == sum(kind == "python" for _, kind in opened)
    assert page in (*PAGES, TUTORIAL, TORCH) or not blocks(page)


def test_all_pages_with_python_are_there():
    assert {"README.md", "onnxruntime.md", "saving.md", "tvm.md", "registering-kernels.md"} <= {p.name for p in PAGES}


@pytest.mark.slow
def test_the_tutorial_can_be_followed_word_by_word(tmp_path):
    steps = re.findall(
        r"^```(python|console)\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert [kind for kind, _ in steps].count("console") >= 6
    environment = os.environ | {
        "PYTHONPATH": str(ROOT), "RAMMER_CACHE": str(tmp_path / "cache"),
        "PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
    }  # fmt: skip
    for kind, text in steps:
        command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-e", "-c", text]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500, env=environment
        )
        assert done.returncode == 0, (text, done.stdout, done.stderr)
    assert {"plan.svg", "logs", "shufflenet.rammer"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_the_reference_of_the_interface_is_made_of_the_docstrings(tmp_path):
    command = [python(), str(ROOT / "scripts" / "programs" / "docs.py"), "-o", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0 and "UserWarning" not in done.stderr, done.stderr
    page = (tmp_path / "tvm_rammer.html").read_text(encoding="utf-8")
    without = [name for name in tvm_rammer.__all__ if f'id="{name}"' not in page]
    assert without == []


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if "://" not in link]
    assert [link for link in links if link and not (page.parent / link).exists()] == []


def test_paths_are_told_from_other_code():
    text = "`ir/`, `runtime/module.py`, `onnx/check`, `./scripts/lint`, `any/node`, `rkernel_gen/cpu/NAME/`, `x.y`"
    assert lost_paths(text) == []
    assert lost_paths("`irr/`, `runtime/modul.py`, `onnx/chek`, `./scripts/lnt`") == [
        "irr/", "runtime/modul.py", "onnx/chek", "scripts/lnt"
    ]  # fmt: skip


@pytest.mark.parametrize("page", [page for page in TEXTS if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_paths_that_a_page_names_are_there(page):
    assert set(lost_paths(prose(page))) <= GENERATED.get(page, set())
