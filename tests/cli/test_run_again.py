"""Running again: what is done is not called again unless what it would send has changed."""

from __future__ import annotations

import json

import pytest
from project import some_rows


async def run_all(project, rows=20, **replaced):
    project.write(some_rows(rows), **replaced)
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    return ran


async def test_a_record_is_known_in_every_process(project):
    """What a process makes of a record does not hang on the order in which it goes through sets."""
    project.write(some_rows(20))
    project.replace('key = "id"\n', "")
    for seed in ("1", "2", "3"):
        project.env["PYTHONHASHSEED"] = seed
        assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 20


async def test_a_second_run_calls_nothing(project):
    """When all is done, running again makes no call and says so."""
    await run_all(project)
    assert len(project.api.calls) == 20
    again = await project.run("run")
    assert again.code == 0
    assert len(project.api.calls) == 20
    assert "20 done before" in again.err


async def test_an_appended_row_is_one_call(project):
    """A new row at the end is one call."""
    await run_all(project)
    project.rows(some_rows(21))
    ran = await project.run("run")
    assert "1 new" in ran.err
    assert len(project.api.calls) == 21


async def test_an_edited_row_is_one_call(project):
    """A row edited in a column that the request uses is called again, alone; the export has its new answer."""
    await run_all(project)
    rows = some_rows(20)
    rows[7][1] = "this one is terrible and awful"
    project.rows(rows)
    ran = await project.run("run")
    assert "1 changed" in ran.err
    assert len(project.api.calls) == 21
    assert project.exported()[7]["label"] == "negative"
    assert project.exported()[6]["label"] == "positive"


async def test_what_the_request_does_not_use_may_change(project):
    """An edit in an unused column, another order, a row taken out: no call, and the export shows the input as it is."""
    await run_all(project)
    rows = some_rows(20, note="edited")[::-1]
    del rows[3]
    project.rows(rows)
    ran = await project.run("run")
    assert ran.code == 0
    assert len(project.api.calls) == 20
    exported = project.exported()
    assert [row["id"] for row in exported] == [row[0] for row in rows]
    assert {row["note"] for row in exported} == {"edited"}
    assert {row["label"] for row in exported} == {"positive"}


async def test_a_row_edited_back_needs_no_call(project):
    """A row that is edited and edited back has its first answer, without a call."""
    await run_all(project, 5)
    rows = some_rows(5)
    rows[2][1] = "terrible"
    project.rows(rows)
    await project.run("run")
    project.rows(some_rows(5))
    ran = await project.run("run")
    assert len(project.api.calls) == 6
    assert "1 with an earlier answer" in ran.err
    assert project.exported()[2]["label"] == "positive"


async def test_a_changed_prompt_calls_nothing_before_it_is_agreed(project):
    """With another prompt and nobody to ask, the run stops with exit 2 before anything is called or written."""
    await run_all(project)
    (project.folder / "prompt.md").write_text("Another question.\n")
    before = project.sql("SELECT * FROM jobs")
    ran = await project.run("run")
    assert ran.code == 2
    assert "20 records were done" in ran.err
    assert "--if-changed" in ran.err
    assert len(project.api.calls) == 20
    assert project.sql("SELECT * FROM jobs") == before


async def test_keep_calls_nothing_then_or_later(project):
    """``keep`` lets the old answers stand for good; after it, an edited row is one call."""
    await run_all(project)
    (project.folder / "prompt.md").write_text("Another question.\n")
    assert (await project.run("run", "--if-changed", "keep")).code == 0
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 20
    assert {row["label"] for row in project.exported()} == {"positive"}
    rows = some_rows(20)
    rows[0][1] = "awful"
    project.rows(rows)
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 21


async def test_redo_calls_all_again_once(project):
    """``redo`` calls every record with the new request, and going on after a stop does not ask again."""
    await run_all(project)
    (project.folder / "prompt.md").write_text("Another question.\n")
    assert (await project.run("run", "--if-changed", "redo", "-n", "5")).code == 0
    assert len(project.api.calls) == 25
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 40


@pytest.mark.parametrize(
    ("old", "new"),
    [("concurrency = 8", "concurrency = 3"), ('first = "50ms"', 'first = "60ms"'), ('parse = "json"', 'extract = "@"')],
)
async def test_what_is_not_sent_is_no_change(project, old, new):
    """Pace, retries and the reading of replies may change without a question."""
    await run_all(project, 5)
    project.replace(old, new)
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 5


async def test_two_steps(project):
    """``-n 2`` does two records, the next run the rest; each says what it did and how things stand."""
    project.write(some_rows(10))
    first = await project.run("run", "-n", "2")
    assert first.code == 0
    assert "this run: 2 done, 0 failed; in all: 2 done, 0 failed, 8 left" in first.err
    second = await project.run("run")
    assert second.code == 0
    assert "this run: 8 done, 0 failed; in all: 10 done, 0 failed, 0 left" in second.err
    assert len(project.api.calls) == 10


async def test_failed_stays_failed_until_a_person_says_so(project):
    """A failed record is left alone by further runs, and called again after ``retry``."""
    project.api.poison = {"sentence number 3 is good"}
    project.write(some_rows(10))
    assert (await project.run("run")).code == 1
    calls = len(project.api.calls)
    again = await project.run("run")
    assert again.code == 1
    assert "1 failed before" in again.err
    assert len(project.api.calls) == calls
    project.api.poison = set()
    assert (await project.run("retry", "--all-failed")).code == 0
    assert (await project.run("run")).code == 0
    assert project.statuses() == {"done": 10}


async def test_plain_sql_by_hand_is_obeyed(project):
    """Rows set back to pending by hand in the database are called by the next run, exactly those."""
    await run_all(project, 6)
    project.sql("UPDATE jobs SET status = 'pending', attempts = 0 WHERE id IN ('k1', 'k4')")
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 8
    assert project.statuses() == {"done": 6}


async def test_records_from_a_pipe(project):
    """Records that come from stdin are called and exported like any others, though they can be read only once."""
    project.write(some_rows(5))
    project.replace('"in.csv"', '"-"')
    with (project.folder / "in.csv").open() as records:
        process = await project.start("run", stdin=records)
    ran = await project.end(process)
    assert ran.code == 0, ran.err
    assert [row["label"] for row in project.exported()] == ["positive"] * 5


async def test_an_openai_batch_file_is_an_input(project):
    """The lines of an OpenAI batch file are records: their custom_id the key, their body the request."""
    project.write([])
    project.replace('path = "in.csv"\nkey = "id"', 'path = "in.jsonl"\nformat = "openai-batch"\nkey = "custom_id"')
    text = (project.folder / "config.toml").read_text()
    body = text[text.index("[request.body]") : text.index("[response]")]
    project.config(text.replace(body, '[request]\nbody = "{{ row.body }}"\n'))
    lines = [
        {
            "custom_id": f"b{n}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": f"{n} is good"}]},
        }
        for n in range(4)
    ]
    project.replace('"out.csv"', '"out.jsonl"')
    (project.folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    written = [json.loads(line) for line in (project.folder / "out.jsonl").read_text().splitlines()]
    assert [(row["custom_id"], row["label"]) for row in written] == [(f"b{n}", "positive") for n in range(4)]
