"""The real command in a process of its own, forked from one that has all of it imported: a tenth of the CPU of a start.

As a script, that process: ``python forking.py FD``. What comes by the socket is one command each: its words, folder
and environment as JSON, with the descriptors of stdin, stdout, stderr, and of a pipe that is told the exit code.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from importlib import import_module

_NEEDED = ("rowcall.cli.running.run", "rowcall.sources.csv_source", "rowcall.store.sqlite")
"""What a run imports."""
_LONGEST = 2**20
_FEW = 1024


class Forked:
    """A command at work, as ``asyncio.subprocess.Process`` has it."""

    def __init__(self, pid, stdin, stdout, stderr, told):
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode = None
        self._ended = asyncio.ensure_future(self._end(told))

    async def _end(self, told):
        self.returncode = int(await told.read())

    async def wait(self):
        await asyncio.shield(self._ended)
        return self.returncode

    async def communicate(self):
        if self.stdin:
            self.stdin.close()
        out, err, _ = await asyncio.gather(self.stdout.read(), self.stderr.read(), self.wait())
        return out, err

    def send_signal(self, number):
        if self.returncode is not None:
            raise ProcessLookupError
        with contextlib.suppress(ProcessLookupError):  # it has ended, and nobody was told yet
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


async def start(words, *, cwd, env, stdin):
    """Start a command whose stdout and stderr are pipes."""
    theirs, ours = [], []
    if stdin == subprocess.PIPE:
        reading, writing = os.pipe()
        theirs.append(reading)
    else:
        theirs.append(os.open(os.devnull, os.O_RDONLY) if stdin == subprocess.DEVNULL else os.dup(stdin.fileno()))
    for _ in ("stdout", "stderr", "told"):
        mine, its = os.pipe()
        ours.append(mine)
        theirs.append(its)
    told = json.dumps([*map(list, (words, env.items())), str(cwd)]).encode()
    server = _server()
    socket.send_fds(server, [told], theirs)
    for one in theirs:
        os.close(one)
    pid = int(server.recv(_LONGEST))
    writer = await _writer(writing) if stdin == subprocess.PIPE else None
    return Forked(pid, writer, *[await _reader(one) for one in ours])


async def _reader(descriptor):
    reader = asyncio.StreamReader()
    file = os.fdopen(descriptor, "rb", 0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader


async def _writer(descriptor):
    loop = asyncio.get_running_loop()
    file = os.fdopen(descriptor, "wb", 0)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), file)
    return asyncio.StreamWriter(transport, protocol, None, loop)


@functools.cache
def _server():
    """The socket to the process that forks; it ends with this one."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(its.fileno())]
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, pass_fds=[its.fileno()], stdin=null, stdout=null, start_new_session=True)
    its.close()
    atexit.register(process.wait, 5)
    atexit.register(ours.close)
    return ours


def _serve(server):
    """Fork for every command; in each child it returns what that is, and in this process None at the end."""
    for module in _NEEDED:
        import_module(module)
    gc.freeze()
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    children = {}
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == woken:
                    os.read(woken, _FEW)
                    _reap(children)
                    continue
                told, files, *_ = socket.recv_fds(server, _LONGEST, 4)
                if not told:
                    _kill_all(children)
                    return None
                pid = os.fork()
                if not pid:
                    return files[:3], *json.loads(told)
                *given, children[pid] = files
                for one in given:
                    os.close(one)
                server.send(b"%d" % pid)


def _reap(children):
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            told = children.pop(ended[0])
            with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
                os.write(told, b"%d" % os.waitstatus_to_exitcode(ended[1]))
            os.close(told)


def _kill_all(children):
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _become(files, words, env, cwd):
    """Be a process that was started for the command alone."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, _FEW)
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode) for number, mode in enumerate("rww"))  # noqa: PTH123, SIM115
    sys.stderr.reconfigure(line_buffering=True, errors="backslashreplace")
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(dict(env))
    sys.argv = ["rowcall", *words]
    sys.path.pop(0)  # the folder of this file


if __name__ == "__main__":
    command = _serve(socket.socket(fileno=int(sys.argv[1])))
    if command:
        _become(*command)
        from rowcall.cli import main

        main()
