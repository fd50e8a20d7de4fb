"""A process that has imported TVM, and forks itself for each client. It ends when its standard input is closed."""

import contextlib
import gc
import importlib
import marshal
import os
import resource
import runpy
import select
import signal
import socket
import sys
import types

PRELOADED = ("tvm", "onnx", "tvm_rammer.cli.main", "tvm_rammer.compilation.compiler", "tvm_rammer.runtime.module")

Request = tuple[list[str], str, dict[str, str], dict[int, tuple[int, int]], list[int]]


def received(client: socket.socket) -> tuple[Request, list[int]]:
    """What a client asks for, and its standard streams."""
    size, streams, _, _ = socket.recv_fds(client, 8, 3)
    missing, request = int.from_bytes(size, "little"), b""
    while len(request) < missing:
        request += client.recv(missing - len(request))
    return marshal.loads(request), streams


def serve(path: str) -> tuple[Request, list[int]] | None:
    """Fork for each client, until there are no more; return in a fork what it is to do."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    clients: dict[int, tuple[socket.socket, int]] = {}  # by descriptors of processes
    print("ready", flush=True)
    while True:
        sources = [0, listener, *clients, *(client for client, _ in clients.values())]
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready:
            return None
        for process in [p for p in clients if p in ready]:
            client, child = clients.pop(process)
            status = os.waitpid(child, 0)[1]
            os.close(process)
            with client, contextlib.suppress(BrokenPipeError):  # it may not have waited for the end
                client.sendall(status.to_bytes(8, "little"))
        for client, child in clients.values():
            if client in ready:  # which has nothing more to say, so it has ended
                os.kill(child, signal.SIGKILL)
        if listener in ready:
            client = listener.accept()[0]
            request, streams = received(client)
            child = os.fork()
            if not child:
                for opened in (listener, client, *(other for other, _ in clients.values())):
                    opened.close()
                for process in clients:
                    os.close(process)
                return request, streams
            for stream in streams:
                os.close(stream)
            clients[os.pidfd_open(child)] = (client, child)
            client.sendall(child.to_bytes(8, "little"))


def become(request: Request, streams: list[int]) -> None:
    """Do what Python does for a command line, in the surroundings of the client."""
    arguments, folder, environment, limits, ignored = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for limit, values in limits.items():
        resource.setrlimit(limit, values)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    kind, *rest = arguments if arguments[0] in ("-c", "-m") else ("", *arguments)
    first = {"-c": "", "-m": folder}.get(kind, os.path.dirname(os.path.abspath(rest[0])))
    sys.path[:1] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["-c", *rest[1:]] if kind == "-c" else rest
    if kind == "-c":
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(rest[0], run_name="__main__")


for name in PRELOADED:
    importlib.import_module(name)
gc.freeze()  # what is shared with forks is not looked through by them, and so not copied
given = serve(sys.argv[1])
if given:
    become(*given)
