"""How many cores a process uses: what the user says, its affinity, its quota; and what its children see."""

import os
import pathlib
import subprocess
import sys

import pytest

from tvm_rammer.device import host_cpu
from tvm_rammer.device.cores import (
    MOST_THREADS,
    chosen_workers,
    cpu_quota,
    two_processors,
    usable_cores,
    usable_processors,
)

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("environment", "workers"),
    [
        ({}, None),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"TVM_NUM_THREADS": "99999999999"}, MOST_THREADS),
        ({"TVM_NUM_THREADS": "2", "OMP_NUM_THREADS": "3"}, 2),
        ({"TVM_NUM_THREADS": "0", "OMP_NUM_THREADS": "3"}, 3),
        ({"TVM_NUM_THREADS": "many"}, None),
    ],
)
def test_the_users_number_counts(environment, workers):
    assert chosen_workers(environment) == workers


V1 = {"cpu,cpuacct/a/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"}


@pytest.mark.parametrize(
    ("lines", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "max 100000\n"}, 2.0),
        ("0::/a\n", {"cpu.max": "50000 100000\n", "a/cpu.max": "300000 100000\n"}, 0.5),
        ("0::/a\n", {"unified/a/cpu.max": "100000 100000\n"}, 1.0),
        ("2:cpuset:/\n1:cpu,cpuacct:/a\n", V1, 2.5),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("no line of a control group", {}, None),
    ],
)
def test_quotas_of_control_groups(tmp_path, lines, files, quota):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own").write_text(lines)
    assert cpu_quota(tmp_path, tmp_path / "own") == quota


@pytest.mark.parametrize(("quota", "cores"), [(None, 8), (0.5, 1), (1.9, 1), (3.0, 3), (64.0, 8)])
def test_a_quota_limits_the_cores(monkeypatch, quota, cores):
    monkeypatch.setattr("tvm_rammer.device.cores.os.sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr("tvm_rammer.device.cores.cpu_quota", lambda: quota)
    assert usable_processors() == cores


@pytest.mark.parametrize(
    ("siblings", "cores"),
    [(["0,4", "1", "2", "3", "0,4"], 4), (["0-1", "0-1", "2-3", "2-3", None], 3), ([None] * 5, 5)],
)
def test_hyper_threads_of_a_core_count_as_one(siblings, cores, monkeypatch, tmp_path):
    monkeypatch.setattr("tvm_rammer.device.cores.os.sched_getaffinity", lambda _: range(5))
    monkeypatch.setattr("tvm_rammer.device.cores.cpu_quota", lambda: None)
    for cpu, text in enumerate(siblings):
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        if text:
            (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(text + "\n")
    assert usable_cores(tmp_path) == cores
    assert usable_processors() == 5
    assert two_processors(tmp_path) == (
        0,
        next(cpu for cpu in range(1, 5) if siblings[cpu] != siblings[0] or not siblings[0]),
    )


def python(script: str, **environment: str) -> list[str]:
    """What a script prints in a process in whose environment nobody else chose a number of workers."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("TVM_NUM_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300,
        env=inherited | {"PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip
    return done.stdout.split()


POOL = """
import threading
from tvm_rammer.device import host_cpu
from tvm_rammer.runtime.pool import use_workers
import tvm
def workers():
    use_workers()
    return tvm.get_global_func("runtime.NumThreads")()
print(host_cpu().units, workers())
thread = threading.Thread(target=lambda: print(workers()))
thread.start()
thread.join()
"""


@pytest.mark.parametrize("environment", [{}, {"OMP_NUM_THREADS": "3"}, {"TVM_NUM_THREADS": "4"}], ids=str)
def test_the_pool_of_each_thread_has_a_worker_for_each_veu(environment):
    units = next(iter(environment.values()), str(usable_cores()))
    assert python(POOL, **environment) == [units] * 3


@pytest.mark.skipif(host_cpu().units < 2, reason="one core is all there is")
def test_a_process_on_one_core_plans_one_veu_whatever_its_parent_does():
    script = (
        "import os, subprocess, sys\n"
        "import tvm\n"
        "from tvm_rammer.runtime.pool import use_workers\n"
        "use_workers()\n"
        "print(tvm.get_global_func('runtime.NumThreads')(), 'TVM_NUM_THREADS' in os.environ, flush=True)\n"
        f"subprocess.run(['taskset', '-c', '0', sys.executable, '-c', {POOL!r}], check=True)\n"
    )
    assert python(script) == [str(usable_cores()), "False", "1", "1", "1"]
