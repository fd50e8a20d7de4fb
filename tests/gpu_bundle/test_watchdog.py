"""A kernel whose wait never comes true: its watchdog ends it, and the bundle says who waited for what."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.emulation.emulate import EmulationError, emulated_library, kernel_parameters
from tests.emulation.programs import H200
from tests.marks import needs_nvcc
from tests.persistent_codegen.cuda.programs import inputs_of, planned, tiny, watched
from tests.persistent_codegen.cuda.read_rows import BEGIN, ROWS, form_of
from tvm_rammer.errors import HangError
from tvm_rammer.gpu_bundle.lower import WATCHDOG_S
from tvm_rammer.gpu_bundle.onsite.hang import HEAD, WORDS, check_hangs, read_hangs, report_bytes
from tvm_rammer.gpu_bundle.onsite.plan import Plan, PlanBuffer, PlanLaunch, View
from tvm_rammer.nvcc import measure_resources

from . import mini


def hangs_of(built):
    words = report_bytes(len(built.program.lanes)) // 4
    return read_hangs(built.state[-words:].tolist())


def signals_of(built, rows):
    """The words of rows that name the events of signals; behind all lanes is one more row."""
    form = form_of(built)
    return rows.reshape(-1, form.words)[
        : built.cuda.constants[BEGIN][len(built.program.lanes)], form.first_signal : form.what
    ]


def without_signal(built, number):
    """The program without one of its signals, and its event; the state is a new one."""
    rows = built.cuda.constants[ROWS].copy()
    places = signals_of(built, rows)
    row, word = np.argwhere(places >= 0)[number]
    event, places[row, word] = places[row, word] // 32 - 2, -1
    constants = [rows if n == ROWS else array for n, array in enumerate(built.cuda.constants)]
    cuda = replace(built.cuda, constants=tuple(constants))
    return replace(built, cuda=cuda, state=constants[-1].copy()), event


def test_programs_with_a_watchdog_compute_the_same():
    (plain,) = planned("two_matmuls", 3)
    built = watched(plain)
    inputs = {f"x{i}": a for i, a in enumerate(inputs_of("two_matmuls"))}
    for seed in range(3):
        got, want = built.run(inputs, seed), plain.run(inputs, seed)
        assert got.keys() == want.keys()
        assert all(np.array_equal(got[name], want[name]) for name in want)
        assert hangs_of(built) == []


def test_without_a_watchdog_the_text_has_nothing_of_it():
    built = tiny()
    assert "watch" not in built.source and "clock64" not in built.source
    assert built.state.size == watched(built).state.size - report_bytes(2) // 4


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("number", [0, 1])
def test_a_signal_that_is_missing_ends_the_kernel_with_a_report(number, seed):
    plain = tiny()
    inputs = {"x": np.linspace(-1, 0.5, 512, dtype="float32")}
    with pytest.raises(EmulationError, match="deadlock"):
        without_signal(plain, number)[0].run(inputs, seed)
    built, event = without_signal(watched(plain), number)
    built.run(inputs, seed)
    hangs = hangs_of(built)
    assert [h.veu for h in sorted(hangs, key=lambda h: h.veu)] == [0, 1]  # each vEU waits for both halves
    assert {(h.row, h.event, h.expected, h.seen, h.run) for h in hangs} == {(1, event, 2, 1, 1)}
    assert hangs[0].late


def test_every_signal_of_a_planned_program_is_missed():
    (plain,) = planned("two_matmuls", 8, 3)
    built = watched(plain)
    inputs = {f"x{i}": a for i, a in enumerate(inputs_of("two_matmuls"))}
    for number in range(int((signals_of(built, built.cuda.constants[ROWS]) >= 0).sum())):
        broken, event = without_signal(built, number)
        broken.run(inputs, seed=number)
        hangs = hangs_of(broken)
        assert any(h.event == event and h.seen < h.expected for h in hangs), (number, hangs)


def test_the_report_of_a_hang_is_an_error_that_names_it():
    words = [0] * (HEAD + 3 * WORDS)
    check_hangs("k", words)
    words[0] = 2
    words[HEAD : HEAD + 6] = 2, 7, 1, 4, 3, 5
    words[HEAD + 2 * WORDS : HEAD + 2 * WORDS + 6] = 1, 4, 9, -2, -5, 5
    with pytest.raises(HangError) as caught:
        check_hangs("k", words)
    text = str(caught.value)
    late, other = (
        "vEU 2, row 4: event 9 was to reach 4294967294 and is at 4294967291 (run 5)",
        "vEU 0, row 7: event 1 was to reach 4 and is at 3 (run 5)",
    )
    assert text.startswith(f"k hung, and its watchdog ended it: {late}; {other}. ")


def bundle_plan(built, folder_name):
    """The plan of a program as a bundle has it, with its files: its cubin is the emulated text."""
    arrays = dict(zip(("weights", "begin", "rows", "state"), built.cuda.constants, strict=True))
    nbytes = 4 * 512
    buffers = {"segment0": PlanBuffer("x", nbytes, "input", "x.bin"), "segment1": PlanBuffer("y", nbytes, "memory")}
    buffers["workspace"] = PlanBuffer("workspace", built.cuda.workspace_bytes, "memory")
    given = {f"{folder_name}/kernels.cubin": str(emulated_library(built.source))}
    for name, array in arrays.items():
        given[f"{folder_name}/{name}.bin"] = array.tobytes() or b"\0"
        buffers[name] = PlanBuffer(name, max(1, array.nbytes), "constant", f"{folder_name}/{name}.bin")
    kernel, numbers = f"{built.program.name}_kernel", {name: n for n, name in enumerate(buffers)}
    names = [name.removesuffix("_ptr") for name, _ in kernel_parameters(built.source, kernel)]
    views = tuple(View(numbers[name], 0, buffers[name].nbytes) for name in names)
    blocks, report = len(built.program.lanes), report_bytes(len(built.program.lanes))
    where = View(numbers["state"], arrays["state"].nbytes - report, report)
    launch = PlanLaunch(
        kernel, (blocks, 1, 1), (built.cuda.threads, 1, 1), built.cuda.shared_bytes, True, views,
        report=where if "rammer_watched_wait(" in built.source else None,
    )  # fmt: skip
    outputs = (View(numbers["segment1"], 0, nbytes),)
    return Plan(kernel, tuple(buffers.values()), (launch,), outputs, {"sm_90": f"{folder_name}/kernels.cubin"}), given


@pytest.mark.parametrize("whole", [True, False])
def test_a_bundle_runs_the_watchdog_first_and_reports_what_hangs(tmp_path, whole):
    x = np.linspace(-1, 0.5, 512, dtype="float32")
    plain, guarded = tiny(), watched(tiny())
    if not whole:
        plain, guarded = without_signal(plain, 1)[0], without_signal(guarded, 1)[0]
    plan, files = bundle_plan(plain, "plain")
    plan_watched, more = bundle_plan(guarded, "watched")
    given = {"x.bin": x.tobytes(), "out.bin": np.exp(np.exp(x.astype(np.float64))).tobytes(), **files, **more}
    mini.make(tmp_path, {"tiny": {"rammer": plan}}, {"rammer": plan_watched}, given)
    done = mini.run(tmp_path, "--minutes", "0.2", "--rounds", "1", "--patience", "20", libcuda=mini.fake_cuda())
    found = mini.results(tmp_path)["models"]["tiny"]
    table = (tmp_path / "results" / "results.md").read_text()
    if whole:
        assert done.returncode == 0, done.stdout + done.stderr
        assert found["contenders"]["rammer"]["status"] == "ok"
        assert "20 runs with a watchdog came to their end" in table
        return
    assert done.returncode == 1
    (failure,) = found["failures"]
    assert "tiny_kernel hung, and its watchdog ended it" in failure
    assert "row 1: event 0 was to reach 2 and is at 1 (run 1)" in failure
    assert found["contenders"] == {}  # what hangs with a watchdog is not run without


def test_it_waits_for_the_seconds_that_it_is_given():
    (limit,) = re.findall(r"rammer_watched_wait\(.*, (\d+)\);", watched(tiny()).source)
    assert int(limit) * 2**20 / (H200.clock_ghz * 1e9) == pytest.approx(WATCHDOG_S, rel=1e-3)


@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvcc_compiles_it_with_hardly_a_spill(arch):
    resources = measure_resources(watched(tiny()).source, arch)
    assert resources.spill_bytes <= 32 and 0 < resources.registers <= 64
