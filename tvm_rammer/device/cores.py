"""How many cores this process may use: what the user says, else its affinity and its quota."""

import os
import pathlib
from collections.abc import Mapping

REGISTERED = "tvm_rammer.workers.v3"
"""The function in TVM's registry that returns the workers of this process; its argument says how many there may be."""

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MOST_THREADS = 1024
"""More than machines have cores; a plan for a billion would never be ready."""

TOPOLOGY = pathlib.Path("/sys/devices/system/cpu")


def chosen_workers(environment: Mapping[str, str] = os.environ) -> int | None:
    """The number of workers that the user chose: TVM's pool reads `TVM_NUM_THREADS`, else `OMP_NUM_THREADS`.

    No more than `MOST_THREADS`.
    """
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        text = environment.get(name, "").partition(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return min(int(text), MOST_THREADS)
    return None


def usable_cores(topology: pathlib.Path = TOPOLOGY) -> int:
    """Cores that this process may use: those of its affinity, and no more than its control group pays for.

    Two hyper-threads of a core count as one: they share the vector units that kernels keep busy. A quota is rounded
    down: of workers that wait for each other none may be stopped for want of time.
    """
    siblings = (_lines(topology / f"cpu{cpu}" / "topology" / "thread_siblings_list") for cpu in _affinity())
    cores = {tuple(lines) or number for number, lines in enumerate(siblings)}
    return _paid(len(cores))


def usable_processors() -> int:
    """The same with each hyper-thread as one: how many threads can run at the same time."""
    return _paid(len(_affinity()))


def num_workers() -> int:
    """How many threads walk lanes at the same time, callers included.

    As many as the user chose, else one for each core that the process may use; never more than its processors.
    """
    return min(chosen_workers() or usable_cores(), usable_processors())


def two_processors(topology: pathlib.Path = TOPOLOGY) -> tuple[int, int] | None:
    """Numbers of two processors that this process may use, on two cores; None where there are no such."""
    first, *others = _affinity()
    siblings = _lines(topology / f"cpu{first}" / "topology" / "thread_siblings_list")
    for cpu in others:
        if not siblings or _lines(topology / f"cpu{cpu}" / "topology" / "thread_siblings_list") != siblings:
            return first, cpu
    return None


def _affinity() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _paid(count: int) -> int:
    quota = cpu_quota()
    return count if quota is None else max(1, min(count, int(quota)))


def cpu_quota(root: pathlib.Path = CGROUPS, own: pathlib.Path = pathlib.Path("/proc/self/cgroup")) -> float | None:
    """Processors that the control groups of this process may use at a time; None where nothing limits them.

    Parameters
    ----------
    root : pathlib.Path
        Where the control groups are mounted.
    own : pathlib.Path
        A file that names those of the process: a line `0::PATH` of version 2, or `N:cpu,cpuacct:PATH` of version 1.
    """
    found = []
    for line in _lines(own):
        if line.count(":") < 2:
            continue
        _, controllers, path = line.split(":", 2)
        parts = pathlib.PurePosixPath(path.lstrip("/")).parts
        ancestors = [pathlib.Path(*parts[:count]) for count in range(len(parts) + 1)]
        if not controllers:
            found += [_quota_v2(folder / a / "cpu.max") for folder in (root, root / "unified") for a in ancestors]
        elif "cpu" in controllers.split(","):
            found += [_quota_v1(folder / a) for folder in (root / "cpu", root / controllers) for a in ancestors]
    return min((quota for quota in found if quota is not None), default=None)


def _quota_v2(path: pathlib.Path) -> float | None:
    words = " ".join(_lines(path)).split()
    if len(words) != 2 or not all(word.isdecimal() for word in words):  # "max 100000" is no limit
        return None
    return int(words[0]) / max(1, int(words[1]))


def _quota_v1(folder: pathlib.Path) -> float | None:
    quota, period = (" ".join(_lines(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
    if not (quota.isdecimal() and period.isdecimal()):  # "-1" is no limit
        return None
    return int(quota) / max(1, int(period))


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
