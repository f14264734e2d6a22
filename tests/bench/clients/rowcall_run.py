"""rowcall itself: the verb ``run`` with a config over the csv, its store on disk, durability full.

With ``uvloop`` as the fourth word on the loop of the extra ``fast``.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from meter import PROMPT, Meter, Work

import rowcall.cli
import rowcall.cli.run

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
[pace]
concurrency = {concurrency}
loop = "{loop}"
"""


def main():
    work = Work(sys.argv)
    os.environ["BENCH_KEY"] = "key"
    with tempfile.TemporaryDirectory(dir=work.input.parent) as folder:
        path = Path(folder) / "config.toml"
        path.write_text(CONFIG.format(**vars(work), prompt=PROMPT, loop=(sys.argv[4:] or ["asyncio"])[0]))
        sys.argv = ["rowcall", "run", str(path), "--quiet"]
        gc.set_threshold(rowcall.cli.OBJECTS)  # as main() does, which leaves the process afterwards
        with Meter() as meter:
            rowcall.cli.run_verb()
        meter.report(done(path.parent / "bench.db"))


def done(store):
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT count(*) FROM jobs WHERE status = 'done'").fetchone()[0]


main()
