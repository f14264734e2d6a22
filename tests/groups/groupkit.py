"""A project whose rows are embedded in groups, run in this process."""

from __future__ import annotations

import json

from project import Project

from rowcall.config import load
from rowcall.engine.engine import Timing
from rowcall.engine.options import Options
from rowcall.model.events import InputRead
from rowcall.run.pipeline import Pipeline

CONFIG = """
name = "t"
[input]
path = "in.csv"
key = "id"
[api]
preset = "openai"
base_url = "{url}"
timeout = "5s"
[request]
path = "/embeddings"
[request.headers]
Idempotency-Key = "{{{{ call.key }}}}"
[request.body]
model = "m"
input = "{{{{ row.text }}}}"
[group]
size = {size}
[pace]
concurrency = {concurrency}
[retry]
backoff = {{ first = "5ms", max = "20ms" }}
[stop]
first_success = "1s"
grace = "5s"
"""
PROBES = (0.02, 0.04)


class GroupProject(Project):
    """``go`` is a run in this process; ``sizes`` are those of the requests that the server got."""

    def write(self, count, *, size=100, concurrency=4, more=""):
        self.rows([f"k{n}", f"text number {n}", ""] for n in range(count))
        self.config(CONFIG.format(url=self.api.url, size=size, concurrency=concurrency) + more)

    async def read_first(self, **overrides):
        """A run whose first call is answered when the whole input is in, so that the store has all there is."""
        usual, self.api.latency = self.api.latency, 0.4

        def hear(event):
            if isinstance(event, InputRead):
                self.api.latency = usual

        return await self.go(emit=hear, **overrides)

    async def go(self, options=None, *, emit=None, **overrides):
        named = {key.replace("__", "."): value for key, value in overrides.items()}
        config = load(self.folder / "config.toml", overrides=named)
        return await Pipeline(config, emit=emit, timing=Timing(PROBES, alone_for=1.0)).run(options or Options())

    @property
    def sizes(self):
        return [len(texts_of(call)) for call in self.api.calls]

    def answers(self):
        return {key: json.loads(answer) for key, answer in self.sql("SELECT id, answer FROM records") if answer}

    def outcomes(self, status):
        return dict(self.sql("SELECT id, attempts FROM jobs WHERE status = ?", status))


def texts_of(call):
    """The texts that a request asked about."""
    asked = call.json()["input"]
    return [asked] if isinstance(asked, str) else asked


def holding(text, status):
    """A poison: requests that hold a text get a status."""
    return lambda texts: status if text in texts.split("\n") else None
