"""Make a bundle: compile models here, pack what a machine with a GPU needs to check and time them."""

import json
import pathlib
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace

import onnx
import tvm

from ..compilation.target import tvm_target
from ..device import DeviceSpec
from ..errors import CodegenError, ToolError
from ..nvcc import compile_cuda
from .files import MANIFEST, Files, replacing_folder
from .kernels import lower_kernels
from .lower import SINGLE_LAUNCHES, VARIANTS, WATCHED
from .models import BundleModel
from .models.peers import torch_graph
from .models.reference import model_inputs, reference_outputs
from .onsite.plan import EDGES_FOLDER, WATCHED_FOLDER, Plan, check_plan, plan_to_json
from .onsite.times.prices import FOLDER, plan_path
from .onsite.torch_peer import FILE as TORCH_FILE
from .plans import plan_of
from .prices import price_plans, prices_source
from .toolchain import TIME_LIMIT_S, build_launcher

MAX_BYTES = 96 << 20
"""Size of a bundle at most: what may be copied to a machine that is lent for minutes."""

_PACKAGE = pathlib.Path(__file__).parent
_EMPTY_PACKAGE = '"""The part of tvm_rammer that a bundle needs; it imports nothing else."""\n'


def make_bundle(
    folder: pathlib.Path,
    device: DeviceSpec,
    models: Mapping[str, BundleModel],
    *,
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Make a bundle.

    Parameters
    ----------
    folder : pathlib.Path
        Is made, or replaced where it holds a bundle.
    device : DeviceSpec
        For which the persistent kernels are planned, and all are compiled.
    models : mapping of str to BundleModel
    say : callable
        Gets a message before each step.

    Returns
    -------
    int
        Size in bytes.

    Raises
    ------
    ToolError
        A compiler is missing, the folder holds something else or cannot be written, or the bundle is too large.
    """
    about = {
        "models": {name: model.description for name, model in models.items()},
        "planned_for": device.name,
        "device": asdict(device),
        "tvm": tvm.__version__,
        "commit": _commit(),
    }
    with replacing_folder(folder, "bundle") as files:
        build_launcher(files.folder / "launcher.so")
        say("prices")
        _add_prices(files, device)
        for name, model in models.items():
            _add_model(files, name, model, device, say)
        files.write_json("bundle.json", about)
        _add_program(files)
        size = files.finish()
        if size > MAX_BYTES:
            raise ToolError(f"the bundle has {size} bytes, more than {MAX_BYTES}; leave models out (--models)")
    return size


def _add_model(
    files: Files,
    name: str,
    model: BundleModel,
    device: DeviceSpec,
    say: Callable[[str], None],
) -> None:
    say(f"{name}: the reference in float64")
    proto = model.build()
    inputs = model_inputs(proto)
    input_files = {given: files.add_array(array) for given, array in inputs.items()}
    references = [files.add_array(array) for array in reference_outputs(proto, inputs)]
    for variant in VARIANTS:
        for watched in (True, False) if variant in WATCHED else (False,):
            say(f"{name}: {variant}{' with a watchdog' if watched else ''}")
            plan, source = make_plan(files, proto, variant, device, input_files, watched=watched)
            prefix = f"models/{name}/{variant}" + f"/{WATCHED_FOLDER}" * watched
            cubins = _add_cubins(files, prefix, source, device.arch, stock=variant == "stock")
            files.write_json(f"{prefix}/plan.json", plan_to_json(replace(plan, cubins=cubins)))
            if variant in SINGLE_LAUNCHES:
                plan, again = make_plan(files, proto, variant, device, input_files, apart=True)
                if again != source:
                    raise CodegenError(f"{name}, {variant}: lowered twice, the kernels differ; report this")
                files.write_json(f"{prefix}/{EDGES_FOLDER}/plan.json", plan_to_json(replace(plan, cubins=cubins)))
    files.write_json(f"models/{name}/{TORCH_FILE}", torch_graph(proto, input_files, files))
    files.write_json(
        f"models/{name}/model.json",
        {
            "description": model.description,
            "tolerance": model.tolerance,
            "references": references,
            "variants": list(VARIANTS),
        },
    )


def _add_prices(files: Files, device: DeviceSpec) -> None:
    cubins = _add_cubins(files, FOLDER, prices_source(), device.arch)
    for name, plan in price_plans(files, device, cubins).items():
        files.write_json(plan_path(pathlib.Path(), name).as_posix(), plan_to_json(plan))


def _add_cubins(files: Files, prefix: str, source: str, architecture: str, *, stock: bool = False) -> dict[str, str]:
    """Add a text and what nvcc makes of it; return the path of the cubin by its architecture."""
    files.write(f"{prefix}/kernels.cu", source)
    cubin = compile_cuda(source, architecture, time_limit_s=TIME_LIMIT_S, stock=stock).cubin
    return {architecture: files.write(f"{prefix}/{architecture}.cubin", cubin)}


def make_plan(
    files: Files,
    model: onnx.ModelProto,
    variant: str,
    device: DeviceSpec,
    inputs: Mapping[str, str],
    *,
    watched: bool = False,
    apart: bool = False,
) -> tuple[Plan, str]:
    """Lower a variant of a model.

    Parameters
    ----------
    files : Files
        Takes the constants.
    model : onnx.ModelProto
    variant : str
        A key of `VARIANTS`.
    device : DeviceSpec
    inputs : mapping of str to str
        The file of each input.
    watched : bool
        Whether its kernels get a watchdog; only for the keys of `WATCHED`.
    apart : bool
        Whether each tensor has memory of its own.

    Returns
    -------
    Plan
        Checked; without cubins.
    str
        The CUDA text of its kernels.
    """
    mod = (WATCHED if watched else VARIANTS)[variant](model, device)
    source, functions = lower_kernels(mod, tvm_target(device))
    plan = plan_of(variant, mod, functions, dict(inputs), files, watched=watched, apart=apart)
    check_plan(plan)
    return plan, source


def _add_program(files: Files) -> None:
    """Copy what runs there: the script, and of this package what it imports."""
    files.write("gpu_bench", (_PACKAGE / "gpu_bench.py").read_bytes())
    (files.folder / "gpu_bench").chmod(0o755)
    files.write("lib/tvm_rammer/__init__.py", _EMPTY_PACKAGE)
    for path in (_PACKAGE.parent / "errors.py", _PACKAGE / "__init__.py", *sorted((_PACKAGE / "onsite").rglob("*.py"))):
        files.write(f"lib/tvm_rammer/{path.relative_to(_PACKAGE.parent).as_posix()}", path.read_bytes())


def _commit() -> str:
    """The commit that the bundle was made from; empty outside of a repository."""
    command = ["git", "-C", str(_PACKAGE), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def read_manifest(folder: pathlib.Path) -> dict[str, dict[str, object]]:
    """Return what a bundle's manifest lists: bytes and SHA-256 by path."""
    listed: dict[str, dict[str, object]] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return listed
