"""``rowcall verify``: whether input, store and export belong together."""

from __future__ import annotations

import json

from project import some_rows


async def test_verify_of_a_sound_project(finished):
    """Nothing found: exit 0 and one line with the counts; no secret is needed."""
    finished.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "NOT_SET_HERE" }')
    ran = await finished.run("verify")
    assert ran.code == 0, ran.out
    assert ran.out == "t: 10 records in the input, 10 in the store, 10 answers: all sound\n"


async def test_verify_finds_records_that_are_not_in_the_store(finished):
    """A record of the input without a job is found by line and key, exit 2."""
    finished.rows(some_rows(12))
    ran = await finished.run("verify")
    assert ran.code == 2
    assert "2 x not in the store: in.csv:12, key k10" in ran.out
    assert "rowcall run" in ran.out


async def test_verify_finds_a_changed_export(finished):
    """A line of the export that is missing, moved or edited is found by its number."""
    lines = (finished.folder / "out.csv").read_text().splitlines(keepends=True)
    for changed in (lines[:4] + lines[5:], [*lines[:4], lines[5], lines[4], *lines[6:]], [*lines[:4], "x\n"]):
        (finished.folder / "out.csv").write_text("".join(changed))
        ran = await finished.run("verify")
        assert ran.code == 2
        assert "out.csv:5" in ran.out
    (finished.folder / "out.csv").unlink()
    assert "out.csv does not exist" in (await finished.run("verify")).out
    assert (await finished.run("export")).code == 0
    assert (await finished.run("verify")).code == 0


async def test_verify_finds_answers_that_are_gone_or_broken(finished):
    """A done record without an answer, and an answer that is not valid JSON, are found by their keys."""
    finished.sql("DELETE FROM results WHERE job = (SELECT rowid FROM jobs WHERE id = 'k4')")
    finished.sql("UPDATE results SET value = '{broken' WHERE job = (SELECT rowid FROM jobs WHERE id = 'k6')")
    ran = await finished.run("verify", "--json")
    assert ran.code == 2
    verdict = json.loads(ran.out)
    assert verdict["sound"] is False
    found = {(finding["what"], finding["sample"]) for finding in verdict["findings"]}
    assert found == {("done without an answer", "k4"), ("an answer that is not valid JSON", "k6")}


async def test_verify_finds_a_damaged_file(finished):
    """Overwritten pages of the file are found, exit 2, without a traceback."""
    finished.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store = finished.folder / "t.db"
    damaged = bytearray(store.read_bytes())
    damaged[6 * 4096 : 20 * 4096] = b"\xff" * (14 * 4096)
    store.write_bytes(damaged)
    ran = await finished.run("verify")
    assert ran.code == 2
    assert "damaged" in ran.out + ran.err


async def test_verify_notes_edits_and_live_runs(finished):
    """Edits that the next run will see to are no fault of the store; the export is then not what would be written."""
    rows = some_rows(10)
    rows[3][1] = "terrible"
    finished.rows(rows)
    verdict = json.loads((await finished.run("verify", "--json")).out)
    [note] = verdict["notes"]
    assert note.startswith("1 record changed in the input since it was read, for example in.csv:5, key k3; ")
    assert (await finished.run("run")).code == 0
    assert (await finished.run("verify")).code == 0
