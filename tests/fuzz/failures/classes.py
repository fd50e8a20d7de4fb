"""Which failures are the same: by the error and its place, or by the operators that are left."""

import re

import onnx

from ..case import Case, ModelCase, Report


def skeleton(text: str) -> str:
    """A message without what differs from case to case: numbers, names in quotes, addresses, paths."""
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith(("File ", "Traceback"))
    ]
    line = f"{lines[0]} {lines[-1]}" if len(lines) > 1 else "".join(lines)
    line = re.sub(r"/[\w./+-]+", "PATH", line)
    line = re.sub(r"0x[0-9a-f]+", "N", line)
    line = re.sub(r"'[^']*'|\"[^\"]*\"", lambda m: m[0] if re.fullmatch(r".[A-Za-z_.]{3,30}.", m[0]) else "'...'", line)
    line = re.sub(r"\(N?[\d, .N-]*\)|\[[\d, .N-]*\]", "SHAPE", line)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "N", line)[:160]


def signature(report: Report) -> tuple[str, ...]:
    """What has to stay the same while a case is shrunk."""
    if report.outcome == "foreign":
        return report.outcome, skeleton(report.detail), report.where
    if report.outcome in ("crash", "hang"):
        return report.outcome, report.where
    if report.outcome == "wrong":
        return (report.outcome,)
    return report.outcome, skeleton(report.detail)


def operators(case: Case) -> list[str]:
    """What a model is made of, or the text of a module."""
    if not isinstance(case, ModelCase):
        return ["PrimFuncs"]
    try:
        return sorted({node.op_type for node in onnx.load_from_string(case.data).graph.node})
    except Exception:
        return ["unreadable"]


def failure_class(case: Case, report: Report) -> str:
    """A line that stands for all failures like this one; the case has been shrunk."""
    if report.outcome == "foreign":
        return f"foreign: {skeleton(report.detail)} [{report.where}]"
    names = " ".join(operators(case))
    if report.outcome == "wrong":
        return f"wrong {report.detail.partition(':')[0]}: {names}"
    what = report.detail.split()[0] if report.outcome == "crash" else "too long"
    return f"{report.outcome} in {report.where}: {what}: {names}"
