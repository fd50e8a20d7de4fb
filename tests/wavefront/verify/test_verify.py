"""Each rule of a plan, broken once."""

import itertools
from dataclasses import replace

import pytest

from tvm_rammer.device import DeviceSpec, host_cpu
from tvm_rammer.errors import VerificationError
from tvm_rammer.ir import Buffer, Instruction, Lane, RProgram, Run, Signal, Wait
from tvm_rammer.wavefront import verify

from ..graphs import DEVICE, make_graph, make_kernels

CPU = host_cpu()

GOOD: tuple[Lane, ...] = (
    (Run(0, 0, 3), Signal(0), Wait(0, 2), Run(1, 0, 1)),
    (Run(0, 3, 1), Signal(0), Wait(0, 2), Run(1, 1, 1)),
)
KERNELS = make_kernels(a=(4, 1.0), b=(2, 1.0))


def program_of(*lanes: Lane, num_events: int = 1) -> RProgram:
    graph = make_graph({"a": "", "b": "a"})
    return RProgram("p", graph, (KERNELS["f_a"][0], KERNELS["f_b"][0]), lanes, num_events, {1: 0}, 512)


def refused(program: RProgram, message: str, device: DeviceSpec | None = None) -> None:
    with pytest.raises(VerificationError, match=message):
        verify(program, device=device)


def with_lane(v: int, *instructions: Instruction) -> RProgram:
    lanes = list(GOOD)
    lanes[v] = instructions
    return program_of(*lanes)


def test_a_good_plan_passes() -> None:
    verify(program_of(*GOOD), device=DEVICE)


def test_more_lanes_than_can_be_resident() -> None:
    verify(program_of(*GOOD), device=replace(CPU, units=2))
    refused(program_of(*GOOD), "2 lanes, but only 1 vEUs can be resident at once", replace(CPU, units=1))


@pytest.mark.parametrize(
    ("most", "needs"),
    [
        (32, {}),
        (16, {"threads": 32, "registers": 128}),  # a quarter of the unit has registers for 4 warps
        (8, {"threads": 32, "registers": 255}),
        (8, {"threads": 256}),
        (2, {"threads": 1024}),
        (2, {"threads": 256, "registers": 128}),
        (1, {"threads": 256, "registers": 255}),
        (0, {"threads": 1024, "registers": 255}),
        (2, {"shared_bytes": 100 * 1024}),
        (0, {"shared_bytes": 228 * 1024}),
        (0, {"threads": 2048}),
    ],
)
def test_how_many_lanes_a_unit_holds(most: int, needs: dict[str, int]) -> None:
    unit, lane = replace(DEVICE, units=1), (Run(0, 0, 4), Run(1, 0, 2))
    kernels = (replace(KERNELS["f_a"][0], **needs), KERNELS["f_b"][0])
    for lanes in range(1, 34):
        program = replace(program_of(lane, *[()] * (lanes - 1), num_events=0), kernels=kernels)
        if lanes <= most:
            verify(program, device=unit)
        else:
            refused(program, f"{lanes} lanes, but only {most} vEUs", unit)


@pytest.mark.parametrize(
    ("buffer", "offset", "message"),
    [
        (Buffer("a.out", (2**31 + 128,), "int8", "intermediate"), 0, "'a.out' ends at element 2147483776"),
        (Buffer("a.out", (2**31,), "float32", "intermediate"), 0, None),
        (Buffer("a.out", (512,), "int8", "intermediate"), 2**31 - 512, None),
        (Buffer("a.out", (512,), "int8", "intermediate"), 2**31, "'a.out' ends at element 2147484160"),
        (Buffer("a.out", (512,), "float32", "intermediate"), 2**33, "'a.out' ends at element 2147484160"),
    ],
)
def test_an_element_that_32_bits_cannot_count(buffer: Buffer, offset: int, message: str | None) -> None:
    program = program_of((Run(0, 0, 4), Run(1, 0, 2)), num_events=0)
    graph = replace(program.graph, buffers=(program.graph.buffers[0], buffer, program.graph.buffers[2]))
    program = replace(program, graph=graph, offsets={1: offset}, workspace_bytes=offset + buffer.nbytes)
    if message is None:
        verify(program)
    else:
        refused(program, message)


def test_rtasks_and_events_that_32_bits_cannot_count() -> None:
    program = program_of(*GOOD)
    huge = replace(KERNELS["f_a"][0], num_rtasks=2**31 + 1)
    refused(replace(program, kernels=(huge, program.kernels[1])), "2147483649 rTasks of 'a'")
    refused(replace(program, num_events=2**26), "67108864 events")


def test_an_rtask_that_runs_twice() -> None:
    refused(with_lane(1, Run(0, 2, 2), Signal(0), Wait(0, 2), Run(1, 1, 1)), r"lane 1, .* rTask 2 of 'a' runs twice")


def test_an_rtask_that_never_runs() -> None:
    refused(with_lane(1, Signal(0), Wait(0, 2), Run(1, 1, 1)), "1 of 4 rTasks of 'a' never run, the first is 3")


def test_an_rtask_that_does_not_exist() -> None:
    refused(with_lane(1, Run(0, 3, 2), Signal(0), Wait(0, 2), Run(1, 1, 1)), "'a' has rTasks 0 to 3, not 3 to 4")
    refused(with_lane(1, Run(0, -1, 1), Signal(0), Wait(0, 2), Run(1, 1, 1)), "'a' has rTasks 0 to 3, not -1")


@pytest.mark.parametrize("run", [Run(0, 3, 0), Run(0, 3, 1, 0)])
def test_an_empty_run(run: Run) -> None:
    refused(with_lane(1, run, Signal(0), Wait(0, 2), Run(1, 1, 1)), "lane 1, instruction 0: 'a' runs . rTasks")


def test_strided_rtasks_are_counted() -> None:
    strided = (
        (Run(0, 0, 2, 2), Signal(0), Wait(0, 2), Run(1, 0, 1)),
        (Run(0, 1, 2, 2), Signal(0), Wait(0, 2), Run(1, 1, 1)),
    )
    verify(program_of(*strided))
    refused(program_of(strided[0], GOOD[1]), "rTasks of 'a' never run|rTask . of 'a' runs twice")


def test_an_operator_that_does_not_exist() -> None:
    refused(with_lane(1, Run(2, 0, 1)), "operator 2 of 2 does not exist")


def test_an_event_that_does_not_exist() -> None:
    refused(with_lane(1, Run(0, 3, 1), Signal(1)), "lane 1, instruction 1: event 1 of 1 does not exist")
    refused(with_lane(1, Wait(-1, 1)), "event -1 of 1 does not exist")


def test_something_that_is_no_instruction() -> None:
    refused(with_lane(1, "run"), "'run' is neither Run, Signal nor Wait")  # type: ignore[arg-type]


def test_a_kernel_of_another_function() -> None:
    program = program_of(*GOOD)
    refused(replace(program, kernels=program.kernels[::-1]), "'a' calls 'f_a', its kernel 'k_b_0' is for 'f_b'")
    refused(replace(program, kernels=program.kernels[:1]), "1 kernels for 2 operators")


def test_a_wait_for_more_than_can_come() -> None:
    refused(with_lane(1, Run(0, 3, 1), Signal(0), Wait(0, 3), Run(1, 1, 1)), "waits for 3 arrivals .* which gets 2")
    refused(with_lane(1, Run(0, 3, 1), Signal(0), Wait(0, 0), Run(1, 1, 1)), "waits for 0 arrivals")


def test_lanes_that_wait_for_each_other() -> None:
    lanes = (Wait(1, 1), Run(0, 0, 4), Signal(0)), (Wait(0, 1), Signal(1), Run(1, 0, 2))
    refused(
        program_of(*lanes, num_events=2),
        "deadlock: lane 0 before 'a' has 0 of 1 arrivals at event 1; lane 1 before 'b' has 0 of 1 arrivals at event 0",
    )


def test_a_lane_that_waits_for_its_own_later_signal() -> None:
    refused(program_of((Run(0, 0, 4), Run(1, 0, 2), Wait(0, 1), Signal(0))), "deadlock: lane 0 before the end")


def test_a_reader_on_another_lane_without_a_wait() -> None:
    refused(
        with_lane(1, Run(0, 3, 1), Signal(0), Run(1, 1, 1)),
        "rTask 1 of 'b' reads 'a.out' on lane 1, but rTask 0 of its writer 'a' on lane 0 may not have ended; a wait is "
        "missing",
    )


def test_a_reader_before_its_writer_on_one_lane() -> None:
    refused(program_of((Run(1, 0, 2), Run(0, 0, 4))), "'b' reads 'a.out' on lane 0, but .* 'a' on lane 0")


def test_a_signal_before_the_rtasks_it_should_follow() -> None:
    refused(
        with_lane(0, Signal(0), Run(0, 0, 3), Wait(0, 2), Run(1, 0, 1)), "'b' reads 'a.out' on lane 1, .* on lane 0"
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_wait_is_for_all_arrivals(order: tuple[int, ...]) -> None:
    writer, other = (Run(0, 0, 4), Signal(0)), (Signal(0),)
    for arrivals in (1, 2):
        lanes = (writer, other, (Wait(0, arrivals), Run(1, 0, 2)))
        program = program_of(*(lanes[v] for v in order))
        if arrivals == 2:
            verify(program)
        else:
            refused(program, "waits for 1 arrivals at event 0, which gets 2; a wait is for all of them")


def test_a_part_of_one_lanes_arrivals_is_no_better() -> None:
    """On a GPU the counter of the second run begins at 3: a wait for 2 * 2 is over before `a` has run."""
    early = (Signal(0), Run(0, 0, 4), Signal(0), Signal(0))
    verify(program_of(early, (Wait(0, 3), Run(1, 0, 2))))
    refused(program_of(early, (Wait(0, 2), Run(1, 0, 2))), "a wait is for all of them")


def test_an_event_for_nothing() -> None:
    alone = (Run(0, 0, 4), Run(1, 0, 2))
    refused(program_of(alone), "nobody waits for event 0 of 1")
    refused(program_of((*alone, Signal(0))), "nobody waits for event 0 of 1")
    refused(program_of((*alone, Wait(0, 0))), "waits for 0 arrivals at event 0, which gets 0")


def test_what_one_lane_learnt_its_signal_passes_on() -> None:
    lanes = (Run(0, 0, 4), Signal(0)), (Wait(0, 1), Signal(1)), (Wait(1, 1), Run(1, 0, 2))
    verify(program_of(*lanes, num_events=2))
    refused(program_of(lanes[0], (Signal(1), Wait(0, 1)), lanes[2], num_events=2), "a wait is missing")


def test_the_workspace() -> None:
    program = program_of(*GOOD)
    refused(replace(program, offsets={}), "intermediate buffer 'a.out' has no offset")
    refused(replace(program, offsets={1: 64}, workspace_bytes=1024), "offset 64: not a multiple of 128")
    refused(replace(program, offsets={1: 128}), "at bytes 128 to 640 leaves the workspace of 512")
    refused(replace(program, offsets={1: -128}), "leaves the workspace")
    refused(replace(program, offsets={1: 0, 0: 512}), "'x' is of kind input but has an offset")
    refused(replace(program, offsets={1: 0, 3: 512}), "buffer 3 of 3")


def test_graphs_that_no_plan_can_compute() -> None:
    program = program_of(*GOOD)
    graph = program.graph
    a, b = graph.operators

    def changed(*operators: object, buffers: tuple[Buffer, ...] = graph.buffers) -> RProgram:
        return replace(program, graph=replace(graph, operators=operators, buffers=buffers))

    refused(changed(a, replace(b, outputs=(1,))), "'a.out' is written by 'a' and by 'b'")
    refused(changed(a, replace(b, outputs=(0,))), "'b' writes 'x', which is of kind input")
    refused(changed(a, replace(b, outputs=(7,))), "'b' uses buffer 7 of 3")
    orphan = Buffer("lost", (1,), "int8", "intermediate")
    refused(
        changed(a, replace(b, inputs=(3,)), buffers=(*graph.buffers, orphan)),
        "'b' reads 'lost', which no operator writes",
    )
    refused(changed(a, replace(b, inputs=(1, 2))), "'b' reads 'b.out' on lane 0")
