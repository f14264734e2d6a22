"""A store with a run of a fake API on it."""

from __future__ import annotations

import pytest

from rowcall.config import load
from rowcall.mock import MockAPI
from rowcall.run.pipeline import Pipeline

CONFIG = """
name = "{name}"
[input]
path = "in.jsonl"
key = "id"
[api]
preset = "openai"
base_url = "{url}"
api_key = {{ env = "API_KEY" }}
[request.body]
model = "m"
messages = [{{ role = "user", content = "{{{{ row.text }}}} {{{{ 1 / row.n }}}}" }}]
[retry]
attempts = 2
backoff = {{ first = "10ms", max = "20ms" }}
[pace]
requests = "60000/min"
[price]
input = 1.0
output = 2.0
"""


@pytest.fixture
async def api():
    async with MockAPI(latency=0.005) as api:
        yield api


@pytest.fixture
def job(tmp_path, api, monkeypatch):
    """Runs a config for rows, and gives the config."""
    monkeypatch.setenv("API_KEY", "sk-the-very-secret-value")

    async def job(rows, name="t"):
        import orjson

        (tmp_path / "in.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        (tmp_path / "config.toml").write_text(CONFIG.format(url=api.url, name=name))
        config = load(tmp_path / "config.toml")
        await Pipeline(config).run()
        return config

    return job
