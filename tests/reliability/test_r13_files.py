"""R13: a store that cannot be used: a clear message, nothing written, exit 2."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import subprocess

import pytest
from project import some_rows

VERBS = [("run",), ("status",), ("errors",), ("export",), ("show", "k1"), ("retry", "--all-failed", "--yes")]


async def refused(project, *words, verbs=VERBS):
    """Every verb says what it is about, exit 2, no call is made, and the store stays as it was, byte by byte."""
    before, calls = contents(project), len(project.api.calls)
    for verb, ran in zip(verbs, await asyncio.gather(*(project.run(*verb) for verb in verbs)), strict=True):
        assert ran.code == 2, (verb, ran)
        assert "t.db" in ran.err, (verb, ran)
        for word in words:
            assert word in ran.err, (verb, ran)
        assert len(ran.err) < 1000
    assert contents(project) == before
    assert len(project.api.calls) == calls


def contents(project):
    path = project.folder / "store" / "t.db"
    return path.read_bytes() if path.exists() else None


@pytest.fixture
async def done(project):
    """A project whose store stands in a folder of its own, with all done."""
    (project.folder / "store").mkdir()
    project.write(some_rows(30))
    project.replace("[stop]", '[store]\npath = "store/t.db"\n[stop]')
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    return project


@pytest.fixture
def mounted(root, done):
    """The store's folder on a disk of its own, to be mounted again as one likes."""
    folder = done.folder / "store"
    kept = {path: path.read_bytes() for path in folder.iterdir()}

    def mount(*how):
        subprocess.run(["mount", *how, folder], check=True)

    mount("-t", "tmpfs", "-o", "size=8m", "none")
    for path, content in kept.items():
        path.write_bytes(content)
    yield mount
    subprocess.run(["umount", "--lazy", folder], check=True)


async def test_read_only_disk(mounted, done):
    """On a read-only disk what changes the store is refused; what only reads it works, or says why not."""
    mounted("-o", "remount,ro")
    before = contents(done)
    ran = await done.run("run")
    assert ran.code == 2
    assert "t.db" in ran.err
    assert "read-only" in ran.err or "cannot be written" in ran.err
    ran = await done.run("status")
    assert ran.code in (0, 2)
    assert contents(done) == before
    assert len(done.api.calls) == 30


async def test_missing_folder(project):
    """A folder that is not there is named, and not made."""
    project.write(some_rows(3))
    project.replace("[stop]", '[store]\npath = "nowhere/t.db"\n[stop]')
    await refused(project, "nowhere")
    assert not (project.folder / "nowhere").exists()


async def test_no_database(done):
    """Something else in its place is left alone."""
    (done.folder / "store" / "t.db").write_text("no database " * 1000)
    await refused(done, "not a database")


async def test_newer_schema(done):
    """A store of a newer rowcall is left alone, and the message says what helps."""
    with done_store(done) as connection:
        connection.execute("PRAGMA user_version = 99")
    await refused(done, "newer rowcall")


def done_store(project):
    return contextlib.closing(sqlite3.connect(project.folder / "store" / "t.db"))


@pytest.mark.parametrize("left", [0.5, pytest.param(50, marks=pytest.mark.slow)])
async def test_truncated(done, left):
    """A file that was cut is called damaged, and nothing is built upon it."""
    path = done.folder / "store" / "t.db"
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content)) if left < 1 else left])
    await refused(done, verbs=VERBS[:2])


@pytest.mark.parametrize("seed", [2, *(pytest.param(n, marks=pytest.mark.soak) for n in range(3, 60))])
async def test_flipped_bits(done, seed):
    """Bits that flipped in the file are met with a message, never with a traceback or another call for what is done."""
    path = done.folder / "store" / "t.db"
    content, place = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(200):
        content[place.randrange(100, len(content))] ^= 1 << place.randrange(8)
    path.write_bytes(content)
    calls = len(done.api.calls)
    for verb in [("run",), ("status",), ("export",)]:
        ran = await done.run(*verb)
        assert ran.code in (0, 1, 2), (verb, ran)
        assert ran.code == 0 or "t.db" in ran.err
    assert len(done.api.calls) == calls
