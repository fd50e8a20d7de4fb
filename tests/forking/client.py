"""What stands for a process that is forked from the server; its socket is beside this file."""

import marshal
import os
import resource
import signal
import socket
import sys

LIMITS = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_STACK")
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

ignored = [number for number in PASSED_ON if signal.getsignal(number) is signal.SIG_IGN]
limits = {number: resource.getrlimit(number) for number in (getattr(resource, name) for name in LIMITS)}
request = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ), limits, [int(number) for number in ignored]))
server = socket.socket(socket.AF_UNIX)
server.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
socket.send_fds(server, [len(request).to_bytes(8, "little")], [0, 1, 2])
server.sendall(request)
child = int.from_bytes(server.recv(8), "little")
for number in set(PASSED_ON) - set(ignored):
    signal.signal(number, lambda number, frame: os.kill(child, number))
answer = server.recv(8)
if not answer:
    sys.exit("the server of forks has ended")
status = os.waitstatus_to_exitcode(int.from_bytes(answer, "little"))
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
