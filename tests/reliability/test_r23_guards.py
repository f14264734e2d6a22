"""R23: each guard is taken out of a copy of the sources; some test must turn red."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

import rowcall

TESTS = Path(__file__).parents[1]

GUARDS = {
    "a settle is fenced by the epoch of its claim": (
        "store/sqlite/settling.py",
        "WHERE rowid = :row AND epoch = :epoch AND status",
        "WHERE rowid = :row AND status",
        "store/test_store_contract.py",
    ),
    "a transaction that writes begins with the write lock": (
        "store/sqlite/connection_thread.py",
        '"BEGIN IMMEDIATE"',
        '"BEGIN"',
        "store/test_sqlite.py",
    ),
    "processes take turns to write": (
        "store/sqlite/locks.py",
        "while not (lock := self._opened()).take():",
        "while not ((lock := self._opened()).take() or True):",
        "store/test_sqlite.py::test_a_held_turn_names_the_holder",
    ),
    "three records that fail in a row are an outage": (
        "failures/gate.py",
        "OUTAGE_AT = 3",
        "OUTAGE_AT = 10**9",
        "reliability/test_r07_outages.py",
    ),
    "an outage uses untouched records up, so that poison ends": (
        "failures/gate.py",
        "first=job.row not in self._touched",
        "first=True",
        "engine/test_judge.py",
    ),
    "an answer is settled in one transaction with its job": (
        "store/sqlite/settling.py",
        "        _keep(connection, settlement.outcome, written, kind, used)\n",
        "",
        "store/test_store_contract.py",
    ),
    "handing over waits while the store is behind": (
        "engine/settler.py",
        "while self.unwritten > 2 * self._concurrency.group:",
        "while self.unwritten > 10**9:",
        "engine/test_settler.py",
    ),
    "a claim is doubted after a long stop": (
        "engine/heartbeat.py",
        "SURE_FOR = 12",
        "SURE_FOR = 10**9",
        "reliability/test_r04_stopped.py",
    ),
    "what is edited while it runs starts over": (
        "store/sqlite/settling.py",
        "AND status = :held AND request = :request AND input_hash = :hash",
        "AND status = :held",
        "store/test_store_contract.py",
    ),
    "a wait that the server asked for is kept": (
        "failures/retries.py",
        "rest=wait if asked is None else asked",
        "rest=None",
        "reliability/test_r09_rate_limits.py",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
async def test_a_test_turns_red(tmp_path, guard):
    """Without the guard the named tests fail; with it the same ones are green in this very suite."""
    file, there, instead, tests = GUARDS[guard]
    shutil.copytree(Path(rowcall.__file__).parent, tmp_path / "rowcall")
    source = (tmp_path / "rowcall" / file).read_text()
    assert there in source, "the guard has moved: name it anew"
    (tmp_path / "rowcall" / file).write_text(source.replace(there, instead))
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow and not soak and not postgres",
        ),
        str(TESTS / tests),
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 1, said.decode()[-2000:]
    print([line for line in said.decode().splitlines() if line.startswith(("FAILED", "ERROR"))])
