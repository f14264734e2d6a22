"""Processes on cores of their own: the client on one, the server on the other."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
CLIENT_CORE, SERVER_CORE = 0, 1

TEXT = "sentence number {} is good and so is the next one"


def pinned(core):
    """What a new process does first: stay on a core, where the system knows how and has it."""

    def pin():
        if hasattr(os, "sched_setaffinity") and core in os.sched_getaffinity(0):
            os.sched_setaffinity(0, {core})

    return pin


def environment():
    """What commands are started with: without what would make their start slower than a person's.

    An interpreter that may not write down what it has compiled compiles all of it anew; an authority file is read by
    rowcall alone, though no call here is encrypted.
    """
    spoils = ("PYTHONDONTWRITEBYTECODE", "SSL_CERT_FILE", "SSL_CERT_DIR")
    return {k: v for k, v in os.environ.items() if k not in spoils and not k.startswith("ROWCALL_")}


@dataclass(frozen=True)
class Used:
    """What a command took: seconds, CPU seconds, most resident memory in MB."""

    seconds: float
    cpu: float
    memory: float


def command(*words, cwd, core=CLIENT_CORE):
    """Run a command on the client's core, or on all where that is None, to its end, which must be exit code 0."""
    began = time.monotonic()
    with (Path(cwd) / "said.txt").open("w+") as said:
        env = environment() | {"BENCH_KEY": "key"}
        process = subprocess.Popen(
            words, cwd=cwd, env=env, stdout=said, stderr=said, preexec_fn=pinned(core), text=True
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(map(str, words))}: exit code {process.returncode}\n{said.read()[-2000:]}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Used(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def rowcall(*words, cwd, core=CLIENT_CORE):
    """Run a verb."""
    return command(sys.executable, "-m", "rowcall", *words, cwd=cwd, core=core)


class Server:
    """The fast server, in a process on its own core."""

    def __init__(self, delay):
        self._process = subprocess.Popen(
            [sys.executable, HERE / "server.py", str(delay)],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=pinned(SERVER_CORE),
        )
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"

    def standing(self):
        """Its CPU seconds, and when the first call came since it was last asked."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/", timeout=60) as reply:
            return json.load(reply)

    def stop(self):
        self._process.kill()
        self._process.communicate()


@contextmanager
def serving(delay):
    server = Server(delay)
    try:
        yield server
    finally:
        server.stop()


def write_rows(path, count):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([f"k{n}", TEXT.format(n)] for n in range(count))


def markdown(head, rows):
    """A table; numbers are right-aligned by the reader's eye, so all are text already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def middle(values):
    return median(list(values))
