"""What rows of the export look like: columns that collide, are kept, are flattened, or differ from row to row."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing

import pytest
from project import some_rows

from rowcall.config import load
from rowcall.model.errors import ConfigError, OutputError
from rowcall.run.pipeline import Pipeline


@pytest.fixture
def job(project):
    """Three rows with id, text and note, whose answers are objects."""
    project.write(some_rows(3))
    return project


async def run(job):
    return await Pipeline(load(job.folder / "config.toml")).run()


def exported(job, name="out.csv"):
    with (job.folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


async def test_a_new_column_that_the_input_has_is_found_beforehand(job):
    """``check`` and the start of ``run`` name the column; nothing is called."""
    job.replace('{ label = "label" }', '{ note = "label" }')
    ran = await job.run("check")
    assert ran.code == 2
    assert "[output] columns names 'note', which the input also has" in ran.out
    with pytest.raises(ConfigError, match=r"config\.toml:\d+: \[output\] columns names 'note'"):
        await run(job)
    assert not job.api.calls


@pytest.mark.parametrize("more", ["overwrite = true", 'keep = ["id", "text"]'])
async def test_ways_out_of_a_collision(job, more):
    """The new column takes the place of the old one, or the old one is left out."""
    job.replace('columns = { label = "label" }', 'columns = { note = "label" }\n' + more)
    await run(job)
    assert {row["note"] for row in exported(job)} == {"positive"}
    assert list(exported(job)[0]) == ["id", "text", "note"]


async def test_a_collision_in_a_late_row_of_jsonl(job):
    """A key that only a late record has is found when the row is written, and the old export stays."""
    lines = [{"id": f"k{n}", "text": "good"} for n in range(150)] + [{"id": "z", "text": "good", "label": "mine"}]
    (job.folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    job.replace("in.csv", "in.jsonl")
    with pytest.raises(OutputError, match=r"in\.jsonl:151: \[output\] columns names 'label'"):
        await run(job)
    assert not (job.folder / "out.csv").exists()


async def test_only_some_columns_are_kept(job):
    """``keep`` says which of the input's columns are written, in which order; none of them where it is empty."""
    job.replace("[output]", '[output]\nkeep = ["note", "id"]')
    await run(job)
    assert list(exported(job)[0]) == ["note", "id", "label"]
    job.replace('keep = ["note", "id"]', "keep = []")
    await job.run("export")
    assert exported(job)[0] == {"label": "positive"}
    job.replace("keep = []", 'keep = ["nota"]')
    ran = await job.run("export")
    assert ran.code == 2
    assert "output.keep names 'nota', which the input does not have" in ran.err


async def test_answers_are_flattened_or_json(job):
    """An object is one column of JSON, or a column for each of its values."""
    job.replace('columns = { label = "label" }', 'columns = { result = "@" }')
    await run(job)
    assert json.loads(exported(job)[0]["result"])["label"] == "positive"
    job.replace("[output]", "[output]\nflatten = true")
    await job.run("export")
    assert exported(job)[0]["result.label"] == "positive"
    assert list(exported(job)[0]) == ["id", "text", "note", "result.label", "result.score"]
    await job.run("export", "-o", "out.jsonl")
    assert job.written("out.jsonl")[0]["result.label"] == "positive"


async def test_csv_of_jsonl_with_mixed_keys(job):
    """Records with other keys than the first hundred get their columns too."""
    lines = [{"id": "a", "text": "good"}, {"id": "b", "text": "good", "more": 1}]
    (job.folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    job.replace("in.csv", "in.jsonl")
    await run(job)
    assert exported(job) == [
        {"id": "a", "text": "good", "label": "positive", "more": ""},
        {"id": "b", "text": "good", "label": "positive", "more": "1"},
    ]


async def test_a_table_by_the_key(job):
    """``path = "x.db"``: rows are found by the key's column, or by ``key`` where the key is no column."""
    job.replace('"out.csv"', '"x.db"\ntable = "labels"')
    await run(job)
    await job.run("export")
    with closing(sqlite3.connect(job.folder / "x.db")) as connection:
        assert connection.execute("SELECT id, label FROM labels").fetchall() == [
            (f"k{n}", "positive") for n in range(3)
        ]
    assert (await job.run("verify")).code == 0
    job.replace('key = "id"', 'key = "{{ row.id }}!"')
    job.replace("labels", "by_template")
    await run(job)
    with closing(sqlite3.connect(job.folder / "x.db")) as connection:
        found = connection.execute("SELECT key, id FROM by_template").fetchall()
    assert found == [(f"k{n}!", f"k{n}") for n in range(3)]


async def test_the_store_is_no_output(job):
    """A table is never written into the store itself."""
    await run(job)
    ran = await job.run("export", "-o", "t.db")
    assert ran.code == 2
    assert "t.db is the store" in ran.err
