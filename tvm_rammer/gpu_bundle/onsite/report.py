"""What was found, as JSON and as Markdown: written again after every event, so that nothing found is lost."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TITLES = {
    "rammer": "persistent kernel",
    "rammer-global": "persistent kernel, a barrier between waves",
    "same-kernels": "our kernels, one launch each",
    "stock": "stock TVM's kernels, one launch each",
    "torch": "PyTorch",
}
SHOWN_ALONE = 6
"""Kernels of a variant in the Markdown; all are in the JSON."""

WAYS = {
    "graph": ", in a CUDA graph",
    "edges": ", in a CUDA graph with the model's edges",
    "compile": ", compiled, in a CUDA graph",
}


class Findings:
    """Collects the events of all models.

    Parameters
    ----------
    about : mapping
        What else the files tell: command, bundle, clocks.
    """

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = dict(about)
        self.device: dict[str, Any] = {}
        self.prices: dict[str, Any] = {}
        self.models: dict[str, dict[str, Any]] = {}

    def start(self, model: str, description: str) -> None:
        """Begin with a model."""
        self.models[model] = {
            "description": description,
            "variants": {},
            "watched": {},
            "contenders": {},
            "alone": {},
            "failures": [],
        }

    def add(self, model: str, event: Mapping[str, Any]) -> None:
        """Take an event of a worker."""
        rest = {key: value for key, value in event.items() if key not in ("event", "contender", "variant")}
        found = self.models[model]
        match event["event"]:
            case "device":
                self.device = rest
            case "loaded":
                found["variants"][event["variant"]] = rest
            case "watched":
                found["watched"][event["contender"]] = rest
            case "alone":
                found["alone"][event["variant"]] = event["kernels"]
            case "checked":
                found["contenders"].setdefault(event["contender"], {}).update(rest)
            case "checked-again":
                found["contenders"][event["contender"]]["after"] = rest
            case "timed":
                found["rounds"] = event["rounds"]
                for contender, figures in event["results"].items():
                    found["contenders"][contender].update(figures)
            case "failed":
                failure = f"{event['contender']}: {event['error']}"
                if failure not in found["failures"]:  # a second process may meet it again
                    found["failures"].append(failure)

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        return {**self.about, "device": self.device, "prices": self.prices, "models": self.models}

    def write(self, folder: Path) -> None:
        """Write results.json and results.md."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")
        (folder / "results.md").write_text(self.as_markdown(), encoding="utf-8")

    def as_markdown(self) -> str:
        """A section a model, for docs/gpu-results.md."""
        lines = [f"{self.device.get('name', 'no GPU')}, {self.device.get('multiprocessors', '?')} multiprocessors, "]
        lines[0] += f"CUDA driver {self.device.get('cuda_driver', '?')}"
        lines += [f"Clocks and temperature {when}: {text}" for when, text in self.about.get("clocks", {}).items()]
        lines += ["", f"`{self.about.get('command', '')}`", ""]
        if self.prices:
            lines += [*price_lines(self.prices, self.about.get("bundle", {}).get("device", {})), ""]
        for name, found in self.models.items():
            lines += [f"### {name}", "", found["description"], "", *model_table(found), ""]
        return "\n".join(lines)


def price_lines(prices: Mapping[str, Any], planned: Mapping[str, Any]) -> list[str]:
    """What was measured of the prices by which plans are made, beside those that these plans were made by."""
    if "failed" in prices:
        return [f"Prices were not measured: {prices['failed']}"]
    rows = [f"| {name} | {us:.2f} | {planned.get(name, '?')} |" for name, us in prices.items()]
    return ["| price, µs | measured | planned with |", "|---|---|---|", *rows]


def model_table(found: Mapping[str, Any]) -> list[str]:
    """The lines of a model's table, and its failures."""
    ours = found["contenders"].get("rammer", {}).get("back_to_back_us")
    lines = [
        "| contender | launches | back to back, µs | p10 to p90 | waited for, µs | of ours | error | same bits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for contender, figures in found["contenders"].items():
        variant, _, graph = contender.partition("+")
        title = TITLES.get(variant, variant) + WAYS.get(graph, "")
        launches = found["variants"].get(variant, {}).get("launches", "?")
        lines.append(f"| {title} | {launches} | {_times(figures, ours)} | {_correctness(figures)} |")
    for variant, facts in found["variants"].items():
        uses = facts["largest"]
        lines.append(
            f"\n{TITLES.get(variant, variant)}: {facts['kernels']} kernels, at most {facts['blocks']} blocks; "
            f"the kernel of most registers has {uses['registers']}, {uses['threads']} threads, "
            f"{uses['static_shared_bytes'] + uses['dynamic_shared_bytes']} bytes of shared memory, "
            f"{uses['local_bytes']} of local memory a thread, and {uses['resident_blocks']} resident blocks a "
            "multiprocessor."
        )
    for variant, facts in found["watched"].items():
        lines.append(f"\n{TITLES.get(variant, variant)}: {facts['runs']} runs with a watchdog came to their end.")
    for variant, kernels in found["alone"].items():
        lines += ["", *_alone_lines(variant, kernels)]
    return [*lines, *(f"\nFailed: {failure}" for failure in found["failures"])]


def _alone_lines(variant: str, kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    """The kernels of a variant that take most of a run, each timed by itself."""
    most = sorted(kernels, key=lambda kernel: -kernel["uses"] * kernel["us"])[:SHOWN_ALONE]
    total = sum(kernel["uses"] * kernel["us"] for kernel in kernels)
    return [
        f"{TITLES.get(variant, variant)}, each timed alone: {total:.1f} µs in all, an edge of a CUDA graph for each.",
        "",
        "| kernel | uses | blocks x threads | µs |",
        "|---|---|---|---|",
        *(f"| {k['kernel']} | {k['uses']} | {k['blocks']} x {k['threads']} | {k['us']:.2f} |" for k in most),
    ]


def _times(figures: Mapping[str, Any], ours: float | None) -> str:
    if "back_to_back_us" not in figures:
        return "not timed | | | "
    median = figures["back_to_back_us"]
    spread = f"{figures['back_to_back_p10_us']:.1f} to {figures['back_to_back_p90_us']:.1f}"
    ratio = f"{median / ours:.2f}" if ours else "?"
    return f"{median:.1f} | {spread} | {figures['waited_us']:.1f} | {ratio}"


def _correctness(figures: Mapping[str, Any]) -> str:
    error = figures.get("max_rel_err")
    same = f"{figures['of_runs'] - figures['different_runs']} of {figures['of_runs']}"
    after = figures.get("after", {})
    if after and after["status"] != "ok":
        same += ", WRONG after the timing"
    mark = "" if figures["status"] == "ok" else " WRONG"
    return f"{'not finite' if error is None else f'{error:.1e}'}{mark} | {same}"
