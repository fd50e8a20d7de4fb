"""RGraph + rKernels + vDevice -> verified rPrograms (Rammer, OSDI 2020, 3.4 and Algorithm 1).

The scheduler is a pure function: no TVM, no I/O, no clock, no randomness.

In go an RGraph, the candidate rKernels of its functions and a device; out come rPrograms. Read in this order:

    problem, options, cost     what a policy is asked; what execution and synchronisation cost
    schedule                   a policy plans, memory is planned, the plan is verified
    choose_veus                how many vEUs a plan is worth
    policies                   Rammer's Algorithm 1 and others
    views                      operators that only copy go: their buffers become parts of others
    plan                       Append and Wait: an rProgram under construction
    verify                     proves that a program may run; shares no code with the rest
    predict                    simulation, critical path and lower bound of a plan; measured runs in the same form
    show                       plans and runs as SVG, and as traces for Perfetto
    share_units                plans of several vEUs on each unit of a GPU
    schedule_together          several models on one vDevice; merge_graphs unites their graphs
    schedule_loop              a loop as one program of several steps; keep_slices: which weights stay on the vEUs
    units                      microseconds, bytes, GB/s
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
from .predict.ways import RPROGRAMS, Way, predict_ways
from .problem import SYNCS
from .schedule import schedule
from .schedule_loop import schedule_loop
from .schedule_together import schedule_together
from .share_units import schedule_sharing
from .show.draw import schedule_svg
from .show.trace import trace_json
from .verify.sequence import verify_sequence
from .verify.verify import verify
from .views import place_views

__all__ = [
    "POLICIES",
    "RPROGRAMS",
    "SYNCS",
    "CostModel",
    "LowerBound",
    "MergedGraph",
    "PathStep",
    "PolicyOptions",
    "ProgramBuilder",
    "Span",
    "Timeline",
    "Way",
    "critical_path",
    "lower_bound",
    "measured_timeline",
    "merge_graphs",
    "place_views",
    "predict_ways",
    "schedule",
    "schedule_loop",
    "schedule_sharing",
    "schedule_svg",
    "schedule_together",
    "simulate",
    "trace_json",
    "verify",
    "verify_sequence",
    "with_prefix",
]
