"""Makes a failing case smaller while it fails in the same way."""

import time
from collections.abc import Callable, Iterator

from ..case import Case, ModelCase, Report
from ..client import Client
from .classes import signature
from .shrink_model import Reducer
from .shrink_script import simpler


def shrink(client: Client, case: Case, report: Report, seconds: float = 60.0) -> tuple[Case, Report]:
    """Return a smaller case that fails in the same way, and its report.

    Parameters
    ----------
    client : Client
    case : Case
    report : Report
        Of the case.
    seconds : float
        When it gives up; what is smallest until then is returned.
    """
    deadline, wanted = time.monotonic() + seconds, signature(report)
    again = client.run(case)
    if not again.failed or signature(again) != wanted:
        return case, Report(report.outcome, f"{report.detail} (not every time: then {again.outcome})", report.where)
    candidates: Callable[[Case], Iterator[Case]]
    if isinstance(case, ModelCase):
        reducer = Reducer(client.values(case), case)
        candidates = reducer.candidates  # type: ignore[assignment]
    else:
        candidates = simpler  # type: ignore[assignment]
    tried: set[bytes] = set()
    progress = True
    while progress:
        progress = False
        for smaller in candidates(case):
            if time.monotonic() > deadline:
                return case, report
            key = repr(smaller).encode()
            if key in tried:
                continue
            tried.add(key)
            found = client.run(smaller)
            if found.failed and signature(found) == wanted:
                case, report, progress = smaller, found, True
                break
    return case, report
