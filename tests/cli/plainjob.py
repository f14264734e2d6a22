"""The plainest job there is, run in this process: one chat call for each row of a csv."""

from __future__ import annotations

from rowcall.config import load
from rowcall.run.pipeline import Pipeline

CONFIG = """
name = "{name}"
[input]
path = "in.csv"
key = "id"
[api]
preset = "openai"
base_url = "{url}"
[request.body]
model = "gpt-4o-mini"
messages = [{{ role = "user", content = "{{{{ row.text }}}}" }}]
"""


def plain_config(url, *, name="t", more=""):
    return CONFIG.format(url=url, name=name) + more


def plain_job(folder, url, records, *, emit=None, more=""):
    """A pipeline over so many rows; ``more`` are further tables of its config."""
    rows = "".join(f"k{n},sentence number {n} is good\n" for n in range(records))
    (folder / "in.csv").write_text(f"id,text\n{rows}")
    (folder / "config.toml").write_text(plain_config(url, more=more))
    return Pipeline(load(folder / "config.toml"), emit=emit)
