"""A folder with a batch file, worked off in this process, or by the real command."""

from __future__ import annotations

import json
import os
from contextlib import chdir
from pathlib import Path
from unittest import mock

from quickproject import QuickProject

from rowcall.cli.running.batch import _config
from rowcall.cli.shared.flags import SETTING_FLAGS
from rowcall.config import RetryTable, StopTable
from rowcall.run.pipeline import Pipeline

FLAGS = {
    "output": Path("out.jsonl"),
    "api_key_env": None,
    "header": (),
    "ordered": False,
    "store": None,
    **dict.fromkeys(SETTING_FLAGS.values()),
    "concurrency": 8,
}


class BatchProject(QuickProject):
    """``batch`` runs lines in this process; verbs are called as ``rowcall`` does."""

    async def batch(self, lines, **flags):
        """Work the lines off; returns the report."""
        self.lines(lines)
        with chdir(self.folder), mock.patch.dict(os.environ, self.env):
            config = _config(FLAGS | {"input": Path("in.jsonl"), "base_url": self.api.url} | flags)
            quick = {
                "retry": RetryTable.model_validate({"backoff": {"first": "20ms", "max": "50ms"}}),
                "stop": StopTable.model_validate({"first_success": "1s"}),
            }
            return await Pipeline(config.model_copy(update=quick)).run()

    def lines(self, lines):
        """Write the batch file."""
        (self.folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def written(self, name="out.jsonl"):
        """The lines of a file of JSON."""
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


def line(number, text=None, **more):
    """A line as the openai SDK's users upload it."""
    body = {"model": "m", "messages": [{"role": "user", "content": text or f"sentence number {number} is good"}]}
    return {"custom_id": f"r{number}", "method": "POST", "url": "/v1/chat/completions", "body": body} | more
