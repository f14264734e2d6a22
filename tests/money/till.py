"""Projects whose calls cost what their texts say, against a server that counts what it served."""

from __future__ import annotations

import json
import re
from pathlib import Path

from aiohttp import web
from project import Project

from rowcall.cli.running.next_commands import NextCommands
from rowcall.cli.running.run_messages import finish_text
from rowcall.config import load
from rowcall.engine.engine import Timing
from rowcall.engine.options import Options
from rowcall.mock import MockAPI
from rowcall.run.pipeline import Pipeline

PRICES = "[price]\ninput = 1.5\noutput = 6\ncached = 0.15\n"
NUMBER = re.compile(r"\d+")


def tokens(text):
    """What a text uses, out of its first number: input, output, cached."""
    number = int(NUMBER.search(text)[0])
    return 100 + number, 7 + number % 5, number % 40


def cost(text):
    """What a call with a text costs in nano-dollars, by the prices above."""
    used, given, cached = tokens(text)
    return round((used - cached) * 1500 + cached * 150 + given * 6000)


def completion(text, *, finish="stop", content='{"label": "good"}', **more):
    used, given, cached = tokens(text)
    usage = {"prompt_tokens": used, "completion_tokens": given, "prompt_tokens_details": {"cached_tokens": cached}}
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    body = {"id": "c-1", "choices": [choice], "usage": usage | more}
    return web.Response(body=json.dumps(body).encode(), content_type="application/json")


class Till(MockAPI):
    """The fake API, whose every reply of 200 costs; ``broken`` are tries that are answered by a cut text."""

    def __init__(self, **options):
        super().__init__(**options)
        self.broken = lambda call: False
        self.respond = lambda call: completion(call.text, finish="length" if self.broken(call) else "stop")

    @property
    def billed(self):
        """What it served, in nano-dollars."""
        return sum(cost(call.text) for call in self.calls if call.status == 200)


class MoneyProject(Project):
    """``go`` is a run in this process."""

    def write(self, rows, *, prices=PRICES, **more):
        super().write(rows, **more)
        self.config((self.folder / "config.toml").read_text() + prices)

    async def go(self, options=None, **overrides):
        named = {key.replace("__", "."): value for key, value in overrides.items()}
        config = load(self.folder / "config.toml", overrides=named)
        pipeline = Pipeline(config, timing=Timing(alone_for=0.05))
        return await pipeline.run(options or Options())

    def said(self, report):
        """The words at the end of a run."""
        return finish_text(report, load(self.folder / "config.toml"), NextCommands.for_config(Path("config.toml")))

    def spent(self):
        return self.sql("SELECT cost FROM totals")[0][0]
