"""What a killed run left behind, looked at without touching it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path


@contextlib.contextmanager
def snapshot(folder, name="t.db"):
    """A connection to a copy of the store, so that the real one still has its recovery before it."""
    with tempfile.TemporaryDirectory() as place:
        for suffix in ("", "-wal"):
            if (folder / f"{name}{suffix}").exists():
                shutil.copyfile(folder / f"{name}{suffix}", Path(place, f"{name}{suffix}"))
        with contextlib.closing(sqlite3.connect(Path(place, name))) as connection:
            yield connection


def answers(folder):
    """The current answer of every record that is done, by key; empty before there is a store."""
    with snapshot(folder) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'jobs'").fetchone()[0]:
            return {}
        return dict(connection.execute(ANSWERS))


ANSWERS = "SELECT jobs.id, value FROM jobs JOIN results ON job = jobs.rowid AND NOT superseded WHERE status = 'done'"


def is_sound(folder):
    """Whether SQLite finds no fault in the file."""
    with snapshot(folder) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def ended_once(project, count):
    """Every record is done with one current answer, and the export has it."""
    assert project.statuses() == {"done": count}
    assert project.sql("SELECT job FROM results WHERE NOT superseded GROUP BY job HAVING count(*) > 1") == []
    exported = project.exported()
    assert len(exported) == count
    assert all(row["label"] for row in exported)
    assert project.is_sound()
