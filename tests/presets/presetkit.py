"""A config in a folder, run in this process against a server on a real socket."""

from __future__ import annotations

import csv
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from rowcall.config import load
from rowcall.mock import MockAPI
from rowcall.run.pipeline import Pipeline

CONFIG = """
name = "t"
[input]
path = "in.csv"
key = "id"
[api]
preset = "{preset}"
base_url = "{base_url}"
{request}
[retry]
backoff = {{ first = "1ms", max = "5ms" }}
[stop]
first_success = "1s"
"""
CHAT = """
[request.body]
model = "m"
max_tokens = 100
messages = [{ role = "user", content = "{{ row.text }}" }]
"""


@dataclass
class Batch:
    """A folder with a config and an input."""

    folder: Path
    api: MockAPI

    async def run(self, texts, *, preset="openai", base_url=None, request=CHAT):
        """Call once for each text; the keys are k0, k1, ..."""
        with (self.folder / "in.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["id", "text"], *([f"k{n}", text] for n, text in enumerate(texts))])
        text = CONFIG.format(preset=preset, base_url=base_url or self.api.url, request=request)
        (self.folder / "config.toml").write_text(text)
        return await Pipeline(load(self.folder / "config.toml")).run()

    def sql(self, query):
        connection = sqlite3.connect(self.folder / "t.db")
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def answers(self):
        return dict(self.sql("SELECT id, answer FROM records"))

    def tries(self, key="k0"):
        return self.sql(
            "SELECT tries.reason, tries.message, tries.body FROM tries JOIN jobs ON jobs.rowid = tries.job"
            f" WHERE jobs.id = '{key}' ORDER BY tries.epoch"
        )
