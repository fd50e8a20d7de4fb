"""What is measured of the processor, how it is kept, and that nothing else depends on it."""

import json
import math
import os
import threading
from dataclasses import asdict, replace

import pytest

from tvm_rammer import driver
from tvm_rammer.cli.main import main
from tvm_rammer.device import figures_file, host, host_cpu, measured_cpu, preset
from tvm_rammer.device.exchange import signal_us
from tvm_rammer.device.host import cache_sizes, typical_cpu
from tvm_rammer.device.measure import measure_cpu
from tvm_rammer.device.measured import Measured, read_measured, write_measured

FIGURES = Measured(
    clock_ghz=2.5, flops_per_cycle=16, unit_gbps=64.0, core_cache_gbps=32.0, memory_gbps=22.6, signal_us=0.25,
    wake_us=16.0, step_cycles=0.5, loads_per_cycle=1.75, line_ns=4.0,
)  # fmt: skip

MAY_BE_ZERO = ("step_cycles", "line_ns")


@pytest.fixture
def measures(monkeypatch, tmp_path):
    """A folder of its own, in which this machine's figures would be kept."""
    monkeypatch.setenv("RAMMER_MEASURE", "1")
    monkeypatch.setenv("RAMMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(host, "_MADE", {})
    return tmp_path / "cache"


@pytest.mark.parametrize("refused", [0, 1])
def test_neither_side_waits_for_one_that_cannot_start(refused, monkeypatch):
    def bind(_thread, processors):
        if processors == {refused}:
            raise PermissionError("not this processor")

    def begins(*_arguments):
        pytest.fail("a side begins alone")

    monkeypatch.setattr(os, "sched_setaffinity", bind)
    with pytest.raises((PermissionError, threading.BrokenBarrierError)):
        signal_us(begins, (0, 1))


def test_a_measurement_is_of_the_kind_that_processors_have():
    found = measure_cpu(typical_cpu())
    assert found.clock_ghz * 4 == round(found.clock_ghz * 4)
    assert found.flops_per_cycle in {2**n for n in range(1, 9)}
    assert all(0 < value < 1e6 for name, value in asdict(found).items() if name not in MAY_BE_ZERO)
    for gbps in (found.unit_gbps, found.core_cache_gbps, found.memory_gbps):
        steps = 2 * math.log2(gbps)
        assert abs(steps - round(steps)) < 0.02


def test_figures_are_measured_once_and_kept(measures, monkeypatch):
    calls = []
    monkeypatch.setattr("tvm_rammer.device.measure.measure_cpu", lambda device: calls.append(device) or FIGURES)
    assert host_cpu() == typical_cpu()  # it only asks for what is there
    first = preset("cpu")
    monkeypatch.setattr(host, "_MADE", {})  # as another process
    assert measured_cpu() == host_cpu() == first
    assert len(calls) == 1
    assert first == replace(
        typical_cpu(), clock_ghz=2.5, flops_per_cycle=16, unit_gbps=64.0, cache_gbps=32.0 * first.units,
        memory_gbps=22.6, signal_us=0.25, barrier_us=0.25, wake_us=16.0,
        step_cycles=0.5, loads_per_cycle=1.75, line_ns=4.0,
    )  # fmt: skip
    assert figures_file().parent == measures


def test_figures_that_cannot_be_kept_are_measured_once_a_process(measures, monkeypatch):
    measures.write_text("a file where the folder would be", encoding="utf-8")
    calls = []
    monkeypatch.setattr("tvm_rammer.device.measure.measure_cpu", lambda device: calls.append(device) or FIGURES)
    assert measured_cpu() == measured_cpu()
    assert len(calls) == 1


def test_a_processor_that_cannot_be_measured_is_a_typical_one(measures, monkeypatch):
    def fail(device):
        raise RuntimeError("no such instructions")

    monkeypatch.setattr("tvm_rammer.device.measure.measure_cpu", fail)
    assert measured_cpu() == typical_cpu()


@pytest.mark.parametrize(("name", "value"), [("wake_us", 8190.0), ("signal_us", 4000.0), ("memory_gbps", 0.01)])
def test_what_is_measured_while_others_have_the_cores_is_not_believed(name, value, measures, monkeypatch):
    monkeypatch.setattr(host, "TYPICAL_WAKE_US", 20.0)
    disturbed = replace(FIGURES, **{name: value})
    monkeypatch.setattr("tvm_rammer.device.measure.measure_cpu", lambda device: disturbed)
    assert getattr(measured_cpu(), name) == getattr(typical_cpu(), name)
    assert measured_cpu().clock_ghz == FIGURES.clock_ghz
    assert read_measured(figures_file()) == replace(FIGURES, **{name: getattr(typical_cpu(), name)})
    write_measured(figures_file(), disturbed)  # as a file of before
    assert read_measured(figures_file()) is None


def test_the_user_forbids_it(measures, monkeypatch):
    write_measured(figures_file(), FIGURES)
    assert host_cpu().clock_ghz == 2.5
    monkeypatch.setenv("RAMMER_MEASURE", "0")
    monkeypatch.setattr("tvm_rammer.device.measure.measure_cpu", lambda device: pytest.fail("it was measured"))
    assert measured_cpu() == typical_cpu()


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{}", json.dumps(asdict(FIGURES) | {"clock_ghz": 0}), json.dumps(asdict(FIGURES) | {"more": 1}),
     json.dumps(asdict(FIGURES) | {"memory_gbps": None}), json.dumps(asdict(FIGURES) | {"flops_per_cycle": 1.5})],
)  # fmt: skip
def test_a_file_that_is_damaged_counts_as_none(tmp_path, text):
    path = tmp_path / "figures.json"
    path.write_text(text, encoding="utf-8")
    assert read_measured(path) is None
    write_measured(path, FIGURES)
    assert read_measured(path) == FIGURES
    assert list(tmp_path.iterdir()) == [path]


def test_caches_are_what_linux_says(tmp_path):
    for index, (level, kind, size) in enumerate([(1, "Data", "32K"), (2, "Unified", "512K"), (3, "Unified", "8192K")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("level", str(level)), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n", encoding="utf-8")
    assert cache_sizes(tmp_path) == (512 << 10, 8 << 20)
    assert cache_sizes(tmp_path / "nowhere") == (1 << 20, 32 << 20)


def test_the_command_shows_the_figures_and_measures_again(measures, monkeypatch, capsys):
    monkeypatch.setattr("tvm_rammer.device.measure.measure_cpu", lambda device: FIGURES)
    write_measured(figures_file(), replace(FIGURES, clock_ghz=1.25))
    assert main(["device"]) == 0
    assert "clock, GHz                                       1.25" in capsys.readouterr().out
    assert main(["device", "--again"]) == 0
    out = capsys.readouterr().out
    assert "2.5\n" in out
    assert f"measured, and kept in {figures_file()}" in out
    monkeypatch.setenv("RAMMER_MEASURE", "0")
    assert main(["device"]) == 0
    assert "typical ones: RAMMER_MEASURE is 0" in capsys.readouterr().out


def test_the_cache_of_models_knows_for_which_figures_it_compiled(measures, monkeypatch):
    from tvm_rammer.compilation.request import Request
    from tvm_rammer.saving.key import request_key
    from tvm_rammer.zoo.models import MODELS

    model = MODELS["ONNX LSTM 2 x 50 x 32"]()
    write_measured(figures_file(), FIGURES)
    keys = {request_key(Request((model,), (None,), preset("cpu")))}
    write_measured(figures_file(), replace(FIGURES, flops_per_cycle=32))
    keys.add(request_key(Request((model,), (None,), preset("cpu"))))
    assert len(keys) == 2
    assert driver.resolve_device("cpu") == host_cpu()
