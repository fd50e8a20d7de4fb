"""Records of a MetaSchedule database become rKernels."""

import dataclasses
import json
import pathlib

import pytest
import tvm
from tvm import s_tir
from tvm.relax import op
from tvm.s_tir import meta_schedule

from tests.functions import TARGET, fused
from tvm_rammer.device import host_cpu
from tvm_rammer.errors import TuningLogError
from tvm_rammer.kernel import Pack
from tvm_rammer.rkernel_gen import construct
from tvm_rammer.rkernel_gen.analysis.parallel import parallel_extent
from tvm_rammer.rkernel_gen.measured import code_hash
from tvm_rammer.rkernel_gen.tiling import Function
from tvm_rammer.tuning.log.database import DATABASE
from tvm_rammer.tuning.log.lines import TuningLogWarning
from tvm_rammer.tuning.log.reader import RKERNELS, TuningLog, folder_name, folder_of, identity

CPU = host_cpu()


@pytest.fixture
def function():
    func = fused([(1, 12, 5, 5), (1, 12, 5, 5)], lambda x, y: op.concat([x, y], axis=1))
    return Function("concat", func, CPU)


def write_database(folder, func, records):
    """Write a database with a record for each (number of rTasks or None for no parallel loop, seconds)."""
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    workload = database.commit_workload(module)
    for rtasks, seconds in records:
        sch = s_tir.Schedule(module)
        if rtasks is not None:
            loop = sch.get_loops(sch.get_sblock("T_concat"))[1]
            part, _ = sch.split(loop, [rtasks, None])
            sch.parallel(part)
        info = meta_schedule.arg_info.ArgInfo.from_prim_func(func)
        record = meta_schedule.database.TuningRecord(sch.trace, workload, [seconds], TARGET, info)
        database.commit_tuning_record(record)


def a_line(of, **changes):
    """A line of `rkernels.jsonl`."""
    return {
        "function": of.key, "name": "n", "rule": "generic",
        "choices": {"parts": 2, "simd": of.device.vector_bytes // 4},
        "num_rtasks": 2, "rtask_us": 3.0, "operator_us": 4.0, "run_us": [4.0], "code": "c",
        "device": identity(of.device), "time": "2026-01-01T00:00:00+00:00",
    } | changes  # fmt: skip


def write_lines(folder, *lines):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RKERNELS).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_each_number_of_rtasks_gives_one_kernel_with_its_measured_time(tmp_path, function):
    write_database(tmp_path, function.func, [(6, 3e-5), (6, 2e-5), (12, 4e-5), (None, 1e-5)])
    kernels = TuningLog(tmp_path).kernels(function)
    assert {k.spec.num_rtasks: round(k.spec.rtask_us, 6) for k in kernels} == {
        6: round(20 * min(CPU.units, 6) / 6, 6),
        12: round(40 * min(CPU.units, 12) / 12, 6),
    }
    assert all(k.spec.measured for k in kernels)
    assert all(parallel_extent(k.func) == k.spec.num_rtasks for k in kernels)


def test_a_function_without_records_gives_none_and_the_log_is_not_written(tmp_path, function):
    write_database(tmp_path, function.func, [(6, 1e-5)])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = dataclasses.replace(function, func=fused([(3, 4)], op.nn.relu))
    assert TuningLog(tmp_path).kernels(other) == ()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_torn_record_of_a_database_is_left_out(tmp_path, function):
    write_database(tmp_path, function.func, [(6, 1e-5)])
    with (tmp_path / DATABASE[1]).open("a") as records:
        records.write('[0,[[[["GetSBl')
    with pytest.warns(TuningLogWarning, match="line 2 has no end"):
        assert len(TuningLog(tmp_path).kernels(function)) == 1


def test_a_missing_or_broken_log_is_named(tmp_path, function):
    with pytest.raises(TuningLogError, match="no folder"):
        TuningLog(tmp_path / "nowhere")
    with pytest.raises(TuningLogError, match=r"neither it nor a folder in it has rkernels\.jsonl"):
        TuningLog(tmp_path)
    for name in DATABASE:
        (tmp_path / name).write_text("not json\n")
    with (
        pytest.warns(TuningLogWarning, match="line 1 is not JSON"),
        pytest.raises(TuningLogError, match="MetaSchedule cannot read"),
    ):
        TuningLog(tmp_path).kernels(function)


def test_measured_tilings_are_found_from_the_root_and_from_the_folder_of_the_target(tmp_path, function):
    folder = folder_of(tmp_path, CPU)
    write_lines(folder, a_line(function, rtask_us=9.0), a_line(function), a_line(function, function="other"))
    for root in (tmp_path, folder):
        ((tiling, time),) = TuningLog(root).measured(function).items()
        assert (tiling.rule, tiling["parts"], time.rtask_us, time.operator_us, time.code) == ("generic", 2, 3, 4, "c")
        assert tiling in construct.space(function)


def test_what_failed_was_not_measured(tmp_path, function):
    write_lines(tmp_path, a_line(function, operator_us=None, rtask_us=None, error="wrong"))
    assert TuningLog(tmp_path).measured(function) == {}


def test_json_that_is_no_record_is_left_out(tmp_path, function):
    write_lines(tmp_path, 1, {"function": function.key}, a_line(function))
    with pytest.warns(TuningLogWarning, match="is no record; it is left out"):
        assert len(TuningLog(tmp_path).measured(function)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"device": "cpu"},
        {"device": {"name": "cpu"}},
        {"choices": [1]},
        {"choices": {"parts": "two"}},
        {"num_rtasks": None},
        {"rtask_us": "fast"},
        {"run_us": 4.0},
        {"function": None},
        {"code": 3},
    ],
    ids=str,
)
def test_a_record_of_another_form_is_left_out(tmp_path, function, changes):
    write_lines(tmp_path, a_line(function) | changes, a_line(function))
    with pytest.warns(TuningLogWarning, match="is no record; it is left out"):
        assert len(TuningLog(tmp_path).measured(function)) == 1


def test_what_computed_something_wrong_is_known(tmp_path, function):
    write_lines(tmp_path, a_line(function, operator_us=None, rtask_us=None, error="wrong result: output 0: off by 1"))
    (time,) = TuningLog(tmp_path).measured(function).values()
    assert time.wrong and time.code == "c"


def test_times_of_another_processor_are_not_used(tmp_path, function):
    write_database(tmp_path, function.func, [(6, 3e-5)])
    assert TuningLog(tmp_path).kernels(function)
    for other in (identity(CPU) | {"processor": "Another, family 6"}, identity(CPU)):
        other = {k: v for k, v in other.items() if k != "processor" or v != CPU.processor}
        write_lines(tmp_path, a_line(function, device=other))
        log = TuningLog(tmp_path)
        with pytest.warns(TuningLogWarning, match="are not used on cpu"):
            assert log.measured(function) == {}
        assert log.kernels(function) == ()


def test_the_committed_log_is_of_its_processor_only():
    device = dataclasses.replace(CPU, arch="x86-64-v4", units=2)
    path = pathlib.Path(__file__).parents[3] / "tuning_logs" / folder_name(device) / RKERNELS
    here = {json.loads(line)["device"]["processor"] for line in path.read_text().splitlines()}
    assert here == {"AMD EPYC, family 26"}


def test_records_of_another_device_are_reported_once_and_not_used(tmp_path, function):
    other = dataclasses.replace(CPU, units=CPU.units + 62)
    line = a_line(function, device=identity(other))
    write_lines(tmp_path / "mixed", line)
    write_lines(tmp_path / "apart" / folder_name(other), line)
    for root in ("mixed", "apart"):
        log = TuningLog(tmp_path / root)
        with pytest.warns(TuningLogWarning, match=f"{other.units}.* are not used on cpu") as warned:
            assert log.measured(function) == log.measured(function) == {}
        assert len(warned) == 1


def test_a_database_is_asked_only_where_no_constructed_kernel_was_measured(tmp_path, function):
    write_database(tmp_path, function.func, [(6, 1e-5)])
    write_lines(tmp_path, a_line(function))
    assert TuningLog(tmp_path).kernels(function) == ()
    unknown = a_line(function, function="other")
    write_lines(tmp_path, unknown)
    assert len(TuningLog(tmp_path).kernels(function)) == 1


def test_the_code_hash_knows_code_and_packs_but_no_names(function):
    first, *_, last = construct.space(function)
    one, two = (construct.build(dataclasses.replace(function, name=name), first) for name in "ab")
    assert code_hash(one) == code_hash(two)
    assert code_hash(one) != code_hash(construct.build(function, last))
    assert code_hash(one) != code_hash(dataclasses.replace(one, packs={1: Pack((4,), (2, 2), (1, 0))}))


def test_folders_are_named_after_the_device(tmp_path):
    cpu = dataclasses.replace(CPU, arch="x86-64-v4", units=2)
    assert folder_name(cpu) == "cpu-x86-64-v4-2"
    assert folder_of(tmp_path / "cpu-x86-64-v4-2", cpu) == tmp_path / "cpu-x86-64-v4-2"
