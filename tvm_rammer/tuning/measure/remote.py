"""Kernels run on other machines, through TVM's own RPC tracker."""

import pathlib
import socket
import struct
from functools import partial
from typing import Any

from ...errors import RammerError
from ..trial import Trial
from . import evaluate
from .bench import RUN_S

CONNECT_S = 10.0
"""Time limit for what a tracker answers."""


class RemoteRunners:
    """Kernels run on the servers that a tracker knows under a key, on as many at once as there are.

    The servers have the target's instruction set, and workers as the target has units: `TVM_NUM_THREADS` says so.

    Parameters
    ----------
    tracker : str
        HOST:PORT.
    key : str

    Raises
    ------
    RammerError
        The tracker does not answer in time, or has no server of that key.
    """

    def __init__(self, tracker: str, key: str) -> None:
        host, _, port = tracker.rpartition(":")
        if not host or not port.isdecimal():
            raise RammerError(f"{tracker!r} is no address of a tracker; give HOST:PORT, as in localhost:9190")
        self._host, self._port, self._key = host, int(port), key
        keys = server_keys(self._host, self._port)
        self.servers = keys.count(key)
        if not self.servers:
            raise RammerError(
                f"the tracker {tracker} has no server of key {key!r} (it has {sorted(set(keys))}); start one: "
                f"python -m tvm.exec.rpc_server --tracker {tracker} --key {key}"
            )

    def make_runner(self, folder: pathlib.Path) -> Any:
        """Make a runner with as many connections as there are servers."""
        from tvm.s_tir.meta_schedule.runner import RPCConfig, RPCRunner

        return RPCRunner(
            RPCConfig(self._host, self._port, self._key, session_timeout_sec=round(RUN_S)),
            f_alloc_argument=partial(evaluate.allocate_remote, folder),
            f_run_evaluator=evaluate.evaluate_remote,
            max_workers=self.servers,
        )

    def groups(self, ready: list[tuple[Trial, Any]]) -> list[list[tuple[Trial, Any]]]:
        """One for each server."""
        return [ready[i : i + self.servers] for i in range(0, len(ready), self.servers)]


def server_keys(host: str, port: int) -> list[str]:
    """The keys of all servers that a tracker knows; TVM's own client waits for ever where no tracker answers.

    Raises
    ------
    RammerError
        No tracker answers within `CONNECT_S`.
    """
    from tvm.rpc import base

    try:
        with socket.create_connection((host, port), timeout=CONNECT_S) as connection:
            connection.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
            if struct.unpack("<i", base.recvall(connection, 4))[0] != base.RPC_TRACKER_MAGIC:
                raise OSError("what answers is no tracker")
            base.sendjson(connection, [base.TrackerCode.SUMMARY])
            _, summary = base.recvjson(connection)
    except (OSError, ValueError) as error:
        raise RammerError(
            f"no RPC tracker answers at {host}:{port} ({error}); start one: python -m tvm.exec.rpc_tracker "
            f"--host {host} --port {port} --port-end {port + 1}"
        ) from error
    return [str(server["key"]).removeprefix("server:") for server in summary["server_info"]]
