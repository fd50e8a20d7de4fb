"""`tvm-rammer tune`: measure kernels, and write a tuning log."""

import argparse
import pathlib
from collections.abc import Sequence
from typing import Any

from ..arguments import whole
from ..device import DeviceSpec
from ..errors import RammerError
from .options import MODEL_HELP, TARGET_HELP, THREADS_HELP, Interrupted, model_of, shapes_of


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("tune", help="measure kernels, and write a tuning log that --logs reads")
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help=f"{MODEL_HELP}; what several have in common is tuned once"
    )
    parser.add_argument("--target", default="cpu", metavar="T", help=TARGET_HELP)
    parser.add_argument(
        "--trials",
        type=int,
        default=1000,
        metavar="N",
        help="over all functions, with those of the log (default: %(default)s)",
    )
    parser.add_argument("--logs", default="tuning_logs", metavar="DIR", help="the log (default: %(default)s)")
    parser.add_argument("--functions", type=int, metavar="K", help="only the K functions that take most of the time")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the search (default: %(default)s)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,224,224", help="a static shape")
    parser.add_argument("--threads", type=int, metavar="N", help=THREADS_HELP)
    parser.add_argument("--rpc", metavar="HOST:PORT", help="a TVM tracker whose servers run the kernels")
    parser.add_argument("--key", metavar="K", help="the key of those servers")
    parser.add_argument("--export", metavar="BUNDLE", help="write a folder that measures on a machine with a GPU")
    parser.add_argument("--import", dest="times", metavar="TIMES", help="take what the folder measured into the log")
    parser.set_defaults(run=run, writes=())


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises
    ------
    RammerError
        The arguments contradict each other, or one of the steps fails.
    """
    from ..compilation.target import resolve_device, with_threads
    from ..tuning.tasks import tasks_of

    _check(arguments)
    device = with_threads(resolve_device(arguments.target), arguments.threads)
    if device.kind == "cpu" and (arguments.export or arguments.times):
        raise RammerError(
            "--export and --import are for GPUs; leave them out, or give a GPU as --target: "
            "kernels of a CPU are measured here, or with --rpc"
        )
    if device.kind != "cpu" and not (arguments.export or arguments.times):
        raise RammerError(
            f"kernels of {device.name} are measured elsewhere; give --export, "
            "run the folder on that machine, then give --import"
        )
    tasks = tasks_of([model_of(m) for m in arguments.models], device, shapes_of(arguments.shape))[: arguments.functions]
    if not tasks:
        raise RammerError(
            f"no operator of {', '.join(arguments.models)} has tilings on {device.name}: nothing to tune; "
            "give another model or target"
        )
    step = _export if arguments.export else _import if arguments.times else _tune
    print(step(arguments, device, tasks))


def _tune(arguments: argparse.Namespace, device: DeviceSpec, tasks: Sequence[Any]) -> str:
    from ..tuning.measure.bench import KernelBench
    from ..tuning.measure.remote import RemoteRunners
    from ..tuning.search import tuner

    remote = RemoteRunners(arguments.rpc, arguments.key) if arguments.rpc else None
    with KernelBench(device, remote) as bench:
        try:
            done = tuner.tune(tasks, device, bench, arguments.logs, trials=arguments.trials, seed=arguments.seed)
        except KeyboardInterrupt as error:
            text = "interrupted; what was measured is in the log, and the same command continues"
            raise Interrupted(text) from error
    return (
        f"{done.trials} trials of {done.functions} functions, {done.failed} failed; "
        f"{done.known} were in the log before: {done.folder}"
    )


def _export(arguments: argparse.Namespace, device: DeviceSpec, tasks: Sequence[Any]) -> str:
    from ..tuning.bundle.candidates import make_candidates
    from ..tuning.search.tuner import first_trials

    trials = first_trials(tasks, device, arguments.logs, trials=arguments.trials, seed=arguments.seed)
    count = make_candidates(pathlib.Path(arguments.export), trials, device)
    return (
        f"{arguments.export}: {count} candidates of {len(tasks)} functions; copy it to the machine with the GPU, "
        "and run `python3 time_candidates.py` in it"
    )


def _import(arguments: argparse.Namespace, device: DeviceSpec, tasks: Sequence[Any]) -> str:
    from ..tuning.bundle.imported import import_times

    counts = import_times(arguments.times, tasks, device, arguments.logs)
    summary = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    return f"{arguments.times}: {summary or 'no times in it'}"


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.models:
        raise RammerError("no MODEL is given; name at least one")
    whole("--trials", arguments.trials, 1)
    whole("--functions", 1 if arguments.functions is None else arguments.functions, 1)
    whole("--seed", arguments.seed, 0)
    if arguments.export and arguments.times:
        raise RammerError("--export is done before, and --import after the folder has measured; give one of them")
    if bool(arguments.rpc) != bool(arguments.key):
        raise RammerError("--rpc HOST:PORT and --key K belong together; give both or none")
    missing = [m for m in arguments.models if isinstance(model_of(m), str) and not pathlib.Path(m).is_file()]
    if missing:
        raise RammerError(f"no such file: {', '.join(missing)}; MODEL is {MODEL_HELP}")
