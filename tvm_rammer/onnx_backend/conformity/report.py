"""What became of ONNX's backend tests, as the text of docs/conformity.md."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from .cases import OUTCOMES, RIGHT, ROUNDING, Verdict

_TOTAL = re.compile(r"^\| all \| (\d+) \|", re.MULTILINE)


def markdown(verdicts: Sequence[Verdict]) -> str:
    """The counts, in all and by operator, and the reason of each that is not right.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Of all cases.
    """
    by_operator: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_operator[verdict.operator].append(verdict)
    lines = [
        "# Conformity",
        "",
        "ONNX's own backend tests (`onnx.backend.test`: node, simple, pytorch-converted, pytorch-operator), each",
        "compiled for the CPU and run through `tvm_rammer.onnx_backend`. `./scripts/conformity` writes this page;",
        "`./scripts/conformity --check` fails where a result is wrong, an exception is not ours, a process dies or",
        "hangs, or fewer are right than it says here.",
        "",
        "Shapes and element types must be the test's, and values within its own tolerances. Inputs that are really",
        "attributes (axes, sizes, scales, a loop's trip count) are constants, as `fix_inputs` makes them. *Refused* is",
        "a RammerError, *foreign* any other exception.",
        "",
        f"| operator | {' | '.join(OUTCOMES)} |",
        f"|---|{'---|' * len(OUTCOMES)}",
        _row("all", verdicts),
        *(_row(operator, found) for operator, found in sorted(by_operator.items())),
        "",
        "## Expected values that are noise",
        "",
        "What these tests expect is the rounding of the arithmetic that made them, above their own tolerance; they are",
        "judged by the tolerance given here.",
        "",
        *(f"- `{name}`: absolute tolerance {atol:g}; {why}" for name, (atol, why) in sorted(ROUNDING.items())),
        "",
        "## What is not right, and why",
        "",
    ]
    for operator, found in sorted(by_operator.items()):
        reasons: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for verdict in found:
            if verdict.outcome != RIGHT:
                reasons[verdict.outcome, _general(verdict.message)].append(verdict.name.partition("/test_")[2])
        if reasons:
            lines += [f"**{operator}**", ""]
            lines += [
                f"- {outcome}, {len(names)}: {reason} ({_some(names)})"
                for (outcome, reason), names in sorted(reasons.items())
            ]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def committed(text: str) -> int:
    """How many cases are right by a page that `markdown` wrote; 0 where it does not say."""
    found = _TOTAL.search(text)
    return int(found[1]) if found else 0


def _row(name: str, verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.outcome for verdict in verdicts)
    return f"| {name} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |"


def _general(message: str) -> str:
    """A message without what differs from case to case: names, addresses."""
    text = re.sub(r"\(0x[0-9a-f]+ vs\. 0x[0-9a-f]+\)", "", message)
    text = re.sub(r"(?<!\w)'[^']*'(?!\w)", "...", text)
    return text.replace("|", "/").replace("\n", " ")


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"`{name}`" for name in names[:3]) + more
