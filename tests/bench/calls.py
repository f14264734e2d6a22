"""Calls a second and CPU a call: rowcall, plain loops, and the one peer with a store, in turn against one server."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from machinery import CLIENT_CORE, HERE, environment, markdown, middle, pinned, serving, write_rows

PEER = "async-batch-llm[openai]"
"""The durable peer; it gets an environment of its own."""


@dataclass(frozen=True)
class Runner:
    """One client: its script, further words for it, the interpreter, and by how much its records are fewer."""

    name: str
    script: str
    words: tuple[str, ...] = ()
    python: str = sys.executable
    share: int = 1


@dataclass(frozen=True)
class Setting:
    """A server's delay in seconds, and how many calls are in flight."""

    delay: float
    in_flight: int

    def __str__(self):
        answer = f"answers after {self.delay * 1000:g} ms" if self.delay else "answers at once"
        return f"server {answer}, {self.in_flight} in flight"


SETTINGS = (Setting(0.05, 200), Setting(0.0, 10))

RUNNERS = [
    Runner("bare aiohttp loop, no store", "aiohttp_loop.py"),
    Runner("**rowcall run**, durability full", "rowcall_run.py"),
    Runner('**rowcall run**, `loop = "uvloop"`', "rowcall_run.py", ("uvloop",)),
    Runner("httpx loop over aiohttp, no store", "httpx_loop.py", ("aiohttp",)),
    Runner("httpx loop, no store", "httpx_loop.py", share=10),
]


def bench(folder, rounds, records, peer_python):
    """All settings as Markdown.

    CPU is that of the process from the config or the rows to the last answer, user and system, all threads; the start
    of the interpreter and the imports, late ones too, are left out for all alike (``meter.py``), rowcall's store, its
    opening and its closing are not.
    """
    runners = list(RUNNERS)
    if peer_python:
        runners.append(Runner("async-batch-llm, SQLite, durability full", "async_batch_llm_run.py", (), peer_python))
    return "\n\n".join(_setting(setting, runners, Path(folder), rounds, records) for setting in SETTINGS)


def _setting(setting, runners, folder, rounds, records):
    results = {}
    with serving(setting.delay) as server:
        for _ in range(rounds):
            for runner in tuple(runners):
                if (result := _one(runner, server, setting, folder, records)) is None:
                    runners.remove(runner)  # for the other settings too: it is said once
                else:
                    results.setdefault(runner.name, []).append(result)
    return _table(setting, results, records)


def _one(runner, server, setting, folder, records):
    count = records // runner.share
    rows = folder / f"in-{count}.csv"
    if not rows.exists():
        write_rows(rows, count)
    before = server.standing()["cpu"]
    ran = subprocess.run(
        [runner.python, HERE / "clients" / runner.script, server.url, rows, str(setting.in_flight), *runner.words],
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=pinned(CLIENT_CORE),
    )
    if ran.returncode:
        print(f"{runner.name}: left out: {ran.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    result = json.loads(ran.stdout)
    if result["calls"] != count:
        raise SystemExit(f"{runner.name}: {result['calls']} of {count} calls came to an answer")
    share = (server.standing()["cpu"] - before) / result["seconds"]
    return count / result["seconds"], 1000 * result["cpu"] / count, share


def _table(setting, results, records):
    middles = {name: [middle(column) for column in zip(*found, strict=True)] for name, found in results.items()}
    bare_rate, bare_cpu, _ = middles[RUNNERS[0].name]
    lines = [
        [name, f"{rate:,.0f}", f"{rate / bare_rate:.2f}", f"{cpu:.2f} ms", f"{cpu / bare_cpu:.2f}", f"{share:.0%}"]
        for name, (rate, cpu, share) in middles.items()
    ]
    head = [f"{records:,} records, {setting}", "calls/s", "of bare", "CPU a call", "of bare", "server's core"]
    return markdown(head, lines)
