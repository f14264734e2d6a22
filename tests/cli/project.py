"""A project in a folder, run by the real command in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import json
import os
import signal
import sqlite3
import sys
from dataclasses import dataclass, field
from pathlib import Path

import forking

from rowcall.mock import MockAPI

CONFIG = """
name = "t"
[input]
path = "in.csv"
key = "id"
[api]
preset = "openai"
base_url = "{url}"
timeout = "5s"
[request.body]
model = "m"
messages = [
    {{ role = "system", content = {{ file = "prompt.md" }} }},
    {{ role = "user", content = "{{{{ row.text }}}}" }},
]
[response]
parse = "json"
[output]
path = "out.csv"
columns = {{ label = "label" }}
[pace]
concurrency = {concurrency}
[retry]
backoff = {{ first = "50ms", max = "200ms" }}
[stop]
first_success = "1s"
grace = "5s"
"""


INTERPRETERS = ("PYTHON", "LD_", "LC_", "LANG", "TZ")
"""Variables that are looked at when an interpreter starts."""


def _hear_signals():
    """Whoever runs the tests may ignore signals, as ``nohup`` and a shell's background do."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@dataclass
class Ran:
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str


@dataclass
class Project:
    """A folder with a config, an input and a prompt; ``api`` is what its calls reach.

    The command can be started by another one, which stands in ``before``. Unless it must be ``fresh``, or its
    environment is the interpreter's business, its process is forked.
    """

    folder: Path
    api: MockAPI
    env: dict = field(default_factory=dict)
    before: list = field(default_factory=list)
    fresh: bool = sys.platform != "linux"

    def write(self, rows, *, concurrency=8, **replaced):
        (self.folder / "prompt.md").write_text("Judge the sentence.\n")
        self.rows(rows)
        text = CONFIG.format(url=self.api.url, concurrency=concurrency)
        for old, new in replaced.items():
            assert old in text
            text = text.replace(old, new)
        self.config(text)

    def config(self, text):
        (self.folder / "config.toml").write_text(text)

    def replace(self, old, new):
        path = self.folder / "config.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def rows(self, rows):
        with (self.folder / "in.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "text", "note"])
            writer.writerows(rows)

    async def start(self, *args, stdin=asyncio.subprocess.DEVNULL):
        env = {k: v for k, v in os.environ.items() if not k.startswith("ROWCALL_")} | self.env
        if not (self.fresh or self.before or any(name.startswith(INTERPRETERS) for name in self.env)):
            return await forking.start(args, cwd=self.folder, env=env, stdin=stdin)
        return await asyncio.create_subprocess_exec(
            *self.before,
            sys.executable,
            "-m",
            "rowcall",
            *args,
            cwd=self.folder,
            env=env,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=_hear_signals,
        )

    async def run(self, *args):
        process = await self.start(*args)
        return await self.end(process)

    async def end(self, process):
        try:
            out, err = await asyncio.wait_for(process.communicate(), 60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        ran = Ran(process.returncode, out.decode(), err.decode())
        assert "Traceback" not in ran.err, ran.err
        assert "Traceback" not in ran.out
        return ran

    async def kill(self, process):
        process.send_signal(signal.SIGKILL)
        await process.communicate()

    def sql(self, query, *args):
        connection = sqlite3.connect(self.folder / "t.db", timeout=5)
        try:
            with connection:
                return connection.execute(query, args).fetchall()
        finally:
            connection.close()

    def statuses(self):
        return dict(self.sql("SELECT status, count(*) FROM jobs GROUP BY status"))

    def attempts(self):
        return dict(self.sql("SELECT id, attempts FROM jobs"))

    def exported(self, name="out.csv"):
        with (self.folder / name).open(newline="") as file:
            return list(csv.DictReader(file))

    def summary(self, ran):
        return json.loads(ran.out)


def some_rows(count, note="n"):
    return [[f"k{n}", f"sentence number {n} is good", note] for n in range(count)]
