"""RGraph + rKernels + vDevice -> verified rPrograms (Rammer, OSDI 2020, 3.4 and Algorithm 1).

The scheduler is a pure function: no TVM, no I/O, no clock, no randomness.

    schedule   a policy places operators (builder: Append, Wait), memory is planned, then verify
    verify     proves that a program may run; shares no code with the scheduler
    lower_bound   what no plan can beat
    simulate   predicts what it does in time; critical_path says why it takes so long
    measured_timeline   what a real run did in time
    schedule_svg, trace_json   show that
    schedule_together   several models on one vDevice
"""

from .cost import CostModel
from .merge_graphs import MergedGraph, merge_graphs, with_prefix
from .options import PolicyOptions
from .plan.builder import ProgramBuilder
from .policies import POLICIES
from .predict.critical_path import PathStep, critical_path
from .predict.lower_bound import LowerBound, lower_bound
from .predict.measured import measured_timeline
from .predict.simulate import simulate
from .predict.timeline import Span, Timeline
from .problem import SYNCS
from .schedule import schedule
from .schedule_together import schedule_together
from .show.draw import schedule_svg
from .show.trace import trace_json
from .verify.verify import verify

__all__ = [
    "POLICIES",
    "SYNCS",
    "CostModel",
    "LowerBound",
    "MergedGraph",
    "PathStep",
    "PolicyOptions",
    "ProgramBuilder",
    "Span",
    "Timeline",
    "critical_path",
    "lower_bound",
    "measured_timeline",
    "merge_graphs",
    "schedule",
    "schedule_svg",
    "schedule_together",
    "simulate",
    "trace_json",
    "verify",
    "with_prefix",
]
