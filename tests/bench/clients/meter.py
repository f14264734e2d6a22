"""What all clients share: their work, and how it is measured. Imports nothing that has to be installed."""

from __future__ import annotations

import csv
import json
import resource
import sys
import time
from pathlib import Path

PROMPT = "Is the sentence positive or negative? Answer as JSON with the keys label and score."
CONFIG = """
name = "bench"
[input]
path = "{input}"
key = "id"
[api]
preset = "openai"
base_url = "{url}"
api_key = {{ env = "BENCH_KEY" }}
[request.body]
model = "m"
messages = [{{ role = "system", content = "{prompt}" }}, {{ role = "user", content = "{{{{ row.text }}}}" }}]
[response]
parse = "json"
"""


def config(url, path="in.csv", more=""):
    """Rowcall's own, as text."""
    return CONFIG.format(url=url, input=path, prompt=PROMPT) + more


class Work:
    """What the command line asks for: URL, INPUT (a csv with the columns id and text), CONCURRENCY."""

    def __init__(self, argv):
        self.url = argv[1]
        self.input = Path(argv[2])
        self.concurrency = int(argv[3])

    @property
    def endpoint(self):
        return f"{self.url}/chat/completions"

    def rows(self):
        with self.input.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


def body(text):
    return {"model": "m", "messages": [{"role": "system", "content": PROMPT}, {"role": "user", "content": text}]}


class Meter:
    """Seconds and CPU seconds of a block; imports and the interpreter's start are outside of it."""

    def __enter__(self):
        self._cpu, self._started = _cpu(), time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.seconds, self.cpu = time.perf_counter() - self._started, _cpu() - self._cpu

    def report(self, calls):
        json.dump({"calls": calls, "seconds": self.seconds, "cpu": self.cpu}, sys.stdout)


def _cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
