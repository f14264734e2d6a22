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

from meter import Meter, Work, config

import rowcall.cli
import rowcall.cli.running.run
import rowcall.sources.csv_source
import rowcall.store.sqlite  # as the one before: what the verb imports once it has read its config

PACE = """
[pace]
concurrency = {concurrency}
loop = "{loop}"
"""


def main():
    work = Work(sys.argv)
    os.environ["BENCH_KEY"] = "key"
    with tempfile.TemporaryDirectory(dir=work.input.parent) as folder:
        path = Path(folder) / "config.toml"
        pace = PACE.format(concurrency=work.concurrency, loop=(sys.argv[4:] or ["asyncio"])[0])
        path.write_text(config(work.url, work.input, more=pace))
        sys.argv = ["rowcall", "run", str(path), "--quiet"]
        gc.set_threshold(rowcall.cli.GC_THRESHOLD)  # as main() does, which leaves the process afterwards
        with Meter() as meter:
            code = rowcall.cli.run_verb()
        if code:
            sys.exit(int(code))  # it has said why
        meter.report(done(path.parent / "bench.db"))


def done(store):
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT count(*) FROM jobs WHERE status = 'done'").fetchone()[0]


main()
