"""A plan: the buffers of a model on the GPU, and the launches that run it once, in order."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ...errors import ModelError

WATCHED_FOLDER = "watched"
"""Beside the plan of a variant that could wait for ever: the same with a watchdog."""

EDGES_FOLDER = "edges"
"""Beside the plan of a variant of several launches: the same with memory of its own for each tensor."""

Kind = Literal["input", "constant", "memory"]


@dataclass(frozen=True, slots=True)
class PlanBuffer:
    """Memory on the GPU.

    Parameters
    ----------
    name : str
    nbytes : int
    kind : {"input", "constant", "memory"}
        Inputs and constants are filled once from `file`; memory starts with any contents.
    file : str
        Path in the bundle; empty for memory.
    """

    name: str
    nbytes: int
    kind: Kind
    file: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A part of a buffer: `nbytes` from byte `offset` on."""

    buffer: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class PlanLaunch:
    """A launch of a kernel whose parameters are pointers.

    Parameters
    ----------
    kernel : str
    grid, block : tuple of int
        x, y, z.
    shared_bytes : int
        Dynamic shared memory of a block.
    cooperative : bool
        Whether all blocks must be resident at once.
    arguments : tuple of View
        In the order of the kernel's parameters.
    writes : tuple of bool
        For each argument whether the kernel may write it; empty where nothing is known.
    report : View or None
        Where a kernel with a watchdog writes what it waited for (`hang`).
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cooperative: bool
    arguments: tuple[View, ...]
    writes: tuple[bool, ...] = ()
    report: View | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A variant of a model.

    Parameters
    ----------
    name : str
    buffers : tuple of PlanBuffer
    launches : tuple of PlanLaunch
    outputs : tuple of View
        float32, in the model's order.
    cubins : mapping of str to str
        Path in the bundle by architecture, such as sm_90.
    """

    name: str
    buffers: tuple[PlanBuffer, ...]
    launches: tuple[PlanLaunch, ...]
    outputs: tuple[View, ...]
    cubins: Mapping[str, str]


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as what `json` can write."""
    return asdict(plan)


def plan_from_json(data: Mapping[str, Any]) -> Plan:
    """Read a plan back, and check it.

    Raises
    ------
    ModelError
        It is inconsistent.
    """
    plan = Plan(
        name=data["name"],
        buffers=tuple(PlanBuffer(**b) for b in data["buffers"]),
        launches=tuple(
            PlanLaunch(
                kernel=item["kernel"],
                grid=_extents(item["grid"]),
                block=_extents(item["block"]),
                shared_bytes=item["shared_bytes"],
                cooperative=item["cooperative"],
                arguments=_views(item["arguments"]),
                writes=tuple(item["writes"]),
                report=View(**item["report"]) if item["report"] else None,
            )
            for item in data["launches"]
        ),
        outputs=_views(data["outputs"]),
        cubins=dict(data["cubins"]),
    )
    check_plan(plan)
    return plan


def _extents(values: list[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z


def _views(items: list[dict[str, int]]) -> tuple[View, ...]:
    return tuple(View(**item) for item in items)


def check_plan(plan: Plan) -> None:
    """Make sure that every launch stays inside of its buffers and of what any CUDA GPU can launch.

    Raises
    ------
    ModelError
        It does not.
    """
    for launch in plan.launches:
        where = f"plan {plan.name!r}, kernel {launch.kernel!r}"
        x, y, z = launch.block
        if min(*launch.grid, *launch.block) < 1 or x * y * z > 1024:
            raise ModelError(f"{where}: cannot launch a grid of {launch.grid} with blocks of {launch.block}")
        if len(launch.writes) not in (0, len(launch.arguments)):
            raise ModelError(
                f"{where}: {len(launch.writes)} of {len(launch.arguments)} arguments are said to be written"
            )
        _check_views(plan, launch.arguments if launch.report is None else (*launch.arguments, launch.report), where)
    _check_views(plan, plan.outputs, f"plan {plan.name!r}, outputs")
    for buffer in plan.buffers:
        if (buffer.kind == "memory") == bool(buffer.file):
            raise ModelError(f"plan {plan.name!r}: {buffer.kind} buffer {buffer.name!r} has file {buffer.file!r}")


def _check_views(plan: Plan, views: tuple[View, ...], where: str) -> None:
    for view in views:
        if not 0 <= view.buffer < len(plan.buffers):
            raise ModelError(f"{where}: there is no buffer {view.buffer}; build the bundle again")
        size = plan.buffers[view.buffer].nbytes
        if view.offset < 0 or view.nbytes < 1 or view.offset + view.nbytes > size:
            raise ModelError(f"{where}: {view} is outside of its buffer of {size} bytes; build the bundle again")
