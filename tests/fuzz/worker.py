"""Runs cases in a child process: a request a line on standard input, answers as JSON lines on standard output."""

import ctypes
import importlib
import json
import os
import pathlib
import pickle
import resource
import signal
import sys
import tempfile
import traceback
from typing import Any

import numpy as np
import onnx

import tvm_rammer

from .case import Case, ModelCase, Report, ScriptCase, load
from .failures.reproduce import WAYS
from .kinds import ALL

MEMORY = 12 << 30
"""Address space of a worker, in bytes."""
ACCIDENTS = ("the ONNX model cannot be understood", "TVM's ONNX frontend misreads", "is not legal for what it reads")
"""What is said of a model that the compiler stumbles over. A valid one is refused for what it has, if at all."""
NEVER = ("Cannot find ffi::Function",)
"""What no error may say: the compiler has forgotten something, and the error only wraps what TVM makes of it."""
LARGEST_INPUT = 1 << 24
"""Elements of an input that a run is tried with."""


class Worker:
    """Answers requests; `say` sends a JSON value to the parent."""

    def __init__(self, say: Any) -> None:
        self.say = say

    def stage(self, name: str) -> None:
        """Tell the parent what comes next: if it is the last that is heard, it crashed or hung."""
        self.say({"stage": name})

    def answer(self, request: dict[str, Any]) -> None:
        self.stage("generate")
        case = load(pathlib.Path(request["path"])) if "path" in request else ALL[request["kind"]](request["seed"])
        if request.get("task") == "values":
            self.stage("judge")
            self.say({"done": self.values(case, pathlib.Path(request["to"]))})
            return
        report = self.report(case, request.get("judges", True))
        self.say({"report": [report.outcome, report.detail, report.where]})

    def values(self, case: Case, to: pathlib.Path) -> bool:
        """Write what the tensors of a model are, by onnx's reference evaluator."""
        from .judge.onnx_judges import by_reference

        try:
            assert isinstance(case, ModelCase)
            values = by_reference(onnx.load_from_string(case.data), case.feeds)
        except Exception:
            return False
        to.write_bytes(
            pickle.dumps({k: np.asarray(v) for k, v in values.items() if isinstance(v, np.ndarray | np.generic)})
        )
        return True

    def report(self, case: Case, judges: bool) -> Report:
        """Compile, run, compare."""
        try:
            if isinstance(case, ScriptCase):
                return self.script(case)
            return self.model(case, judges)
        except tvm_rammer.RammerError as error:
            outcome = "foreign" if any(told in str(error) for told in NEVER) else "refused"
            return Report(outcome, f"{type(error).__name__}: {error}", _innermost(error))
        except Exception as error:
            return Report("foreign", f"{type(error).__name__}: {error}"[:2000], _innermost(error))

    def model(self, case: ModelCase, judges: bool) -> Report:
        from .judge.onnx_judges import judge

        self.stage("judge")
        model = _parsed(case.data)
        verdict = "not judged"
        if model is not None and judges:
            flaw = _flaw(model)
            verdict = f"checker: {flaw}" if flaw else judge(model, case.feeds)
        self.stage("compile")
        if case.kind == "injected":
            return _injected(model, verdict)
        if case.kind in WAYS:
            return self.ways(case, None if isinstance(verdict, str) else verdict)
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:  # what is open is read again when it is called
            file.write(case.data)
            file.flush()
            try:
                module = tvm_rammer.compile(file.name)
            except tvm_rammer.RammerError as error:
                if isinstance(verdict, str) or not str(error).startswith(ACCIDENTS):
                    raise
                return Report("foreign", f"a valid model is refused by accident: {error}", _innermost(error))
            self.stage("run")
            given = {s.name: case.feeds[s.name] if s.name in case.feeds else _drawn(s) for s in module.inputs}
            if any(value is None for value in given.values()):
                return Report("skipped", "an input is too large to run")
            got = module(**given)
        if isinstance(verdict, str):
            return Report("skipped", verdict)
        self.stage("compare")
        fault = verdict.fault([np.asarray(a) for a in (got if isinstance(got, tuple) else (got,))])
        if fault == "unstable":
            return Report("skipped", "unstable: roundings explain the difference")
        return Report("wrong", fault) if fault else Report("right")

    def ways(self, case: ModelCase, verdict: Any) -> Report:
        """Compile and run in several ways."""
        module, function = WAYS[case.kind]
        judge = getattr(importlib.import_module(f"tests.fuzz.judge.{module}"), function)
        fault = judge(case.seed, case.data, case.feeds, verdict)
        if fault == "unstable":
            return Report("skipped", "unstable: roundings explain the difference")
        return Report("wrong", fault) if fault else Report("right")

    def script(self, case: ScriptCase) -> Report:
        import tvm
        from tvm import relax

        from tvm_rammer.device import host_cpu

        from .generate.scripts import script
        from .judge.evaluated import Evaluated
        from .judge.tvm_judge import PlainTvm, arrays_of, parse

        if case.kind == "kernels":
            return self.kernels(case)
        self.stage("judge")
        source, feeds = script(case.recipe), list(case.feeds.values())
        right = Evaluated(case.recipe, feeds)
        try:
            plain = PlainTvm(source)
            want = plain.run(feeds)
            known = right.fault(want) is None
        except Exception as error:
            known = False
            if case.recipe.entry != "compile":  # the other entry is TVM's, which refuses it there, too
                return Report("skipped", f"plain TVM: {type(error).__name__}: {error}")
        self.stage("compile")
        mod = parse(source)
        if case.recipe.entry == "compile":
            module = tvm_rammer.compile(mod)
            self.stage("run")
            got = module(*feeds)
            arrays = list(got) if isinstance(got, tuple) else [got]
        else:
            target = tvm.target.Target(host_cpu().target_config())
            executable = tvm.compile(mod, target, relax_pipeline="rammer")
            self.stage("run")
            main = relax.VirtualMachine(executable, tvm.cpu())["main"]
            arrays = arrays_of(main(*[tvm.runtime.tensor(a) for a in feeds]))
        self.stage("compare")
        fault = right.fault(arrays)
        if fault and known:  # TVM's roundings are nearer; but it fills in what nobody writes
            fault = plain.fault(feeds, want, arrays)
        if fault == "unstable":
            return Report("skipped", "unstable: roundings explain the difference")
        return Report("wrong", fault) if fault else Report("right")

    def kernels(self, case: ScriptCase) -> Report:
        from .generate.kernels import WITH_WEIGHTS
        from .generate.scripts import script
        from .judge.evaluated import Evaluated
        from .judge.kernels import UnjudgedError, judge_kernels
        from .judge.tvm_judge import parse

        self.stage("compile")
        (function,) = case.recipe.functions
        weights = case.recipe.entry == WITH_WEIGHTS
        try:
            func, feeds = parse(script(case.recipe))[function.name], list(case.feeds.values())
            verdict = judge_kernels(func, feeds, weights=weights, right=Evaluated(case.recipe, feeds))
        except UnjudgedError as error:
            return Report("skipped", f"plain TVM: {error}")
        return Report("wrong", verdict.fault) if verdict.fault else Report("right")


def _parsed(data: bytes) -> onnx.ModelProto | None:
    try:
        return onnx.load_from_string(data)
    except Exception:
        return None


def _flaw(model: onnx.ModelProto) -> str | None:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        return str(error)
    return None


def _drawn(spec: Any) -> np.ndarray | None:
    """Values for an input that the case has none for; a size that is open is 2."""
    shape = [2 if d == -1 else d for d in spec.shape]
    if np.prod([float(d) for d in shape]) > LARGEST_INPUT:
        return None
    return np.asarray(np.random.default_rng(0).uniform(-2, 2, shape)).astype(spec.dtype)


def _injected(model: Any, verdict: Any) -> Report:
    from .injected import compile_badly

    neg = any(node.op_type == "Neg" for node in model.graph.node)
    fault = verdict.fault(compile_badly(model.graph.name, neg, verdict.results))
    return Report("wrong", fault) if fault else Report("right")


def _innermost(error: BaseException) -> str:
    """The innermost function of the package that an error came through."""
    package = str(pathlib.Path(tvm_rammer.__file__).parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(package)]
    return f"{frames[-1].filename[len(package) + 1 :]}:{frames[-1].name}" if frames else ""


def main() -> None:
    """Serve until standard input ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no worker outlives its parent
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever others print is no answer

    def say(value: Any) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    worker = Worker(say)
    say({"stage": "ready"})
    for line in sys.stdin:
        worker.answer(json.loads(line))


if __name__ == "__main__":
    main()
