"""What a run of the fuzzer found, as tables."""

from collections import Counter
from dataclasses import dataclass, field

from ..case import OUTCOMES, Report
from .classes import skeleton


@dataclass
class Found:
    """A class of failures."""

    line: str
    path: str
    kind: str
    seed: int
    count: int = 1


@dataclass
class Summary:
    """Counts of outcomes, and the classes of failures; of each refusal one case by name."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)

    def count(self, kind: str, seed: int, report: Report) -> None:
        """Count one case."""
        self.outcomes[kind, report.outcome] += 1
        if report.outcome == "refused":
            reason = skeleton(report.detail)
            self.refused[reason] += 1
            self.examples.setdefault(reason, f" ({kind}:{seed})")
        if report.outcome == "skipped":
            self.skipped[skeleton(report.detail)[:70]] += 1

    @property
    def failures(self) -> int:
        return sum(f.count for f in self.found.values())

    def text(self, most: int = 12) -> str:
        """The tables; of refusals the `most` frequent."""
        kinds = sorted({kind for kind, _ in self.outcomes})
        lines = ["| kind | cases | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 2) + "|"]
        for kind in kinds:
            counts = [self.outcomes[kind, o] for o in OUTCOMES]
            lines.append(f"| {kind} | {sum(counts)} | " + " | ".join(map(str, counts)) + " |")
        for title, some in (("refused", self.refused), ("skipped", self.skipped)):
            lines += [f"\n{title}:"] if some else []
            lines += [f"  {count:5d}  {line}{self.examples.get(line, '')}" for line, count in some.most_common(most)]
            if len(some) > most:
                lines.append(f"  {sum(some.values()) - sum(c for _, c in some.most_common(most)):5d}  others")
        lines.append(f"\n{len(self.found)} distinct failures, {self.failures} in all" + (":" if self.found else ""))
        for f in sorted(self.found.values(), key=lambda f: -f.count):
            lines.append(
                f"  {f.count:5d}  {f.line}\n         {f.path}\n         ./scripts/fuzz --case {f.kind}:{f.seed}"
            )
        return "\n".join(lines)
