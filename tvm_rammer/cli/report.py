"""`tvm-rammer report`: one page of what a model became, planned beside measured."""

import argparse
import os
from typing import Any

from ..errors import TargetError
from ..files import is_saved_model, write_text
from .bench import add_comparison, compared
from .options import cache_options, compile_arguments, compiled, model_of, model_options
from .progress import end_progress, progress


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser(
        "report",
        parents=[model_options(), cache_options()],
        help="write one HTML page of what a model became: plan, real run, kernels",
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUT.html", help="the page; it needs no other file")
    parser.add_argument(
        "--runs",
        type=int,
        default=30,
        metavar="N",
        help="how often to run it on this CPU (default: %(default)s); 0: only the plan",
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="A,B",
        help="also compare with stock, stock-same-kernels, onnxruntime, openvino, torch",
    )
    add_comparison(parser)
    parser.set_defaults(run=run, writes=("output",))


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    note = _why_not_measured(arguments)
    if note and arguments.against:
        raise TargetError(f"nothing to compare, leave out --against {arguments.against}: {note}")
    from ..report_page import report_html

    comparison = compared(arguments) if arguments.against else None
    profile = None
    if note:
        record = compiled(arguments).compilation
    else:
        from ..runtime.profiler import profile as profile_model

        progress(f"compiling and running {arguments.model}")
        profile = profile_model(model_of(arguments.model), runs=arguments.runs, **compile_arguments(arguments))
        record = profile.compilation
        end_progress()
    page = report_html(record, _title(arguments.model), profile=profile, comparison=comparison, note=note)
    write_text(arguments.output, page)
    print(f"wrote {arguments.output} ({len(page.encode()) / 1e3:.0f} kB)")


def _why_not_measured(arguments: argparse.Namespace) -> str:
    """Why there are planned lanes only; empty where the model is run."""
    if is_saved_model(arguments.model):
        return "A saved model does not note the time. All times are predicted; give the model itself to measure it."
    if arguments.runs == 0:
        return "All times are predicted: the model was not run."
    from ..compilation.target import resolve_device
    from ..device import why_not_here

    device = resolve_device(arguments.target)
    if device.kind != "cpu" or why_not_here(device):
        return f"Planned for {device.name}, which is not this machine's CPU. All times are predicted."
    return ""


def _title(model: str) -> str:
    """The model's name: a path's last part, a name of this package without its kind."""
    name = model.removeprefix("zoo:").removeprefix("light:").rstrip("/").rpartition("/")[2]
    return os.fsencode(name).decode("utf-8", "backslashreplace")  # names of files may be no text
