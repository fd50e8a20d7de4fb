"""A control group with a quota of processor time, for what a container gives."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

from ..errors import ToolError

ROOT = pathlib.Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@contextlib.contextmanager
def quota_group(processors: float, root: pathlib.Path = ROOT) -> Iterator[pathlib.Path]:
    """Make a control group whose processes may together use so many processors.

    Parameters
    ----------
    processors : float
        Time within a tenth of a second, over that tenth.
    root : path
        Where control groups are mounted.

    Yields
    ------
    pathlib.Path
        The file that takes the number of a process that joins.

    Raises
    ------
    ToolError
        Control groups cannot be made here; it takes the right to.
    """
    quota, first = round(processors * PERIOD_US), root / "cpu" / "cpu.cfs_quota_us"
    folder = (first.parent if first.parent.is_dir() else root) / f"tvm_rammer_{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise ToolError(
            f"cannot make a control group {str(folder)!r}: {error.strerror}; run without a quota"
        ) from error
    try:
        if (folder / "cpu.max").exists():
            (folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota))
        yield folder / "cgroup.procs"
    except OSError as error:
        raise ToolError(f"cannot set a quota in {str(folder)!r}: {error.strerror}; run without one") from error
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def joining(command: list[str], group: pathlib.Path | None) -> list[str]:
    """The command of a process that joins a group before it begins; the same command where there is none."""
    return command if group is None else ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(group), *command]
