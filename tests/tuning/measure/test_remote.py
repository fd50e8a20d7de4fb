"""Kernels run on servers of a tracker, and a tracker that is not there is told in time."""

import os
import socket
import subprocess
import sys
import threading
import time

import onnx
import pytest
from tvm.rpc.tracker import Tracker

from tests.tuning.models import CPU, small_model
from tvm_rammer.cli.main import main
from tvm_rammer.errors import RammerError
from tvm_rammer.tuning.log.reader import TuningLog
from tvm_rammer.tuning.measure import remote
from tvm_rammer.tuning.measure.remote import RemoteRunners, server_keys
from tvm_rammer.tuning.tasks import tasks_of


@pytest.fixture
def tracker():
    started = Tracker(host="127.0.0.1", port=9190, port_end=12345, silent=True)
    yield f"127.0.0.1:{started.port}"
    started.terminate()


def start_server(tracker, key):
    command = [sys.executable, "-m", "tvm.exec.rpc_server", "--host", "127.0.0.1", "--silent"]
    env = os.environ | {"TVM_NUM_THREADS": str(CPU.units)}
    return subprocess.Popen([*command, "--tracker", tracker, "--key", key], env=env)


def wait_for(tracker, key, count):
    host, port = tracker.split(":")
    end = time.monotonic() + 60
    while server_keys(host, int(port)).count(key) < count:
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.slow
def test_two_servers_measure_for_one_log(tracker, tmp_path, capfd):
    servers = [start_server(tracker, "cpu") for _ in range(2)]
    try:
        wait_for(tracker, "cpu", 2)
        assert RemoteRunners(tracker, "cpu").servers == 2
        model, logs = str(tmp_path / "small.onnx"), str(tmp_path / "logs")
        onnx.save(small_model(), model)
        assert main(["tune", model, "--trials", "8", "--logs", logs, "--rpc", tracker, "--key", "cpu"]) == 0
        out, err = capfd.readouterr()
        assert "8 trials of 4 functions, 0 failed" in out, err
        measured = [
            time for task in tasks_of([model], CPU) for time in TuningLog(logs).measured(task.function).values()
        ]
        assert len(measured) == 8
        assert all(time.operator_us > 0 and time.rtask_us > 0 for time in measured)
    finally:
        for server in servers:
            server.terminate()
            server.wait()


def test_no_server_of_the_key(tracker):
    with pytest.raises(RammerError, match=r"no server of key 'gpu' \(it has \[\]\); start one: python -m"):
        RemoteRunners(tracker, "gpu")


def test_no_tracker_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(RammerError, match=r"no RPC tracker answers at 127.0.0.1:\d+ .*start one"):
        RemoteRunners(address, "cpu")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n"])
def test_something_else_there(answer, monkeypatch):
    monkeypatch.setattr(remote, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                connection.sendall(answer)
                time.sleep(1.0)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(RammerError, match="no RPC tracker answers"):
            RemoteRunners(f"127.0.0.1:{listening.getsockname()[1]}", "cpu")
        thread.join()


@pytest.mark.parametrize("tracker", ["nowhere", ":9190", "host:port"])
def test_an_address_is_a_host_and_a_port(tracker):
    with pytest.raises(RammerError, match="give HOST:PORT"):
        RemoteRunners(tracker, "cpu")


def test_a_tracker_can_be_started_at_any_port_as_the_message_says():
    with pytest.raises(RammerError, match=r"--port 9399 --port-end 9400"):
        server_keys("127.0.0.1", 9399)
