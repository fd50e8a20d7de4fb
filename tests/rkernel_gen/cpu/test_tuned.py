"""Records of a MetaSchedule database become rKernels."""

import pytest
import tvm
from tvm import s_tir
from tvm.relax import op
from tvm.s_tir import meta_schedule

from tests.functions import TARGET, fused
from tvm_rammer.device import host_cpu
from tvm_rammer.errors import TuningLogError
from tvm_rammer.rkernel_gen.tuned import FILES, TuningLog, parallel_extent


@pytest.fixture
def func():
    return fused([(1, 12, 5, 5), (1, 12, 5, 5)], lambda x, y: op.concat([x, y], axis=1))


def write_records(folder, func, records):
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


def test_each_number_of_rtasks_gives_one_kernel_with_its_measured_time(tmp_path, func):
    write_records(tmp_path, func, [(6, 3e-5), (6, 2e-5), (12, 4e-5), (None, 1e-5)])
    kernels = TuningLog(tmp_path).kernels("concat", func, host_cpu())
    units = host_cpu().units
    assert {k.spec.num_rtasks: round(k.spec.rtask_us, 6) for k in kernels} == {
        6: round(20 * min(units, 6) / 6, 6),
        12: round(40 * min(units, 12) / 12, 6),
    }
    assert all(k.spec.measured for k in kernels)
    assert all(parallel_extent(k.func) == k.spec.num_rtasks for k in kernels)


def test_a_function_without_records_gives_none_and_the_log_is_not_written(tmp_path, func):
    write_records(tmp_path, func, [(6, 1e-5)])
    before = [(tmp_path / name).read_bytes() for name in FILES]
    other = fused([(4, 4)], op.tanh)
    assert TuningLog(tmp_path).kernels("tanh", other, host_cpu()) == ()
    assert [(tmp_path / name).read_bytes() for name in FILES] == before


def test_a_missing_log_is_an_error_that_names_the_files(tmp_path):
    with pytest.raises(TuningLogError, match=r"database_workload\.json and database_tuning_record\.json missing"):
        TuningLog(tmp_path / "nowhere")


def test_a_broken_log_is_an_error(tmp_path, func):
    write_records(tmp_path, func, [(6, 1e-5)])
    (tmp_path / FILES[1]).write_text("[0, not json\n")
    with pytest.raises(TuningLogError, match="cannot read"):
        TuningLog(tmp_path)
