"""Two-step work: the results of one job are the records of the next."""

from __future__ import annotations

import csv
import json

import pytest
from plainjob import plain_config

from rowcall.config import load
from rowcall.engine.options import Options
from rowcall.model.errors import InputError
from rowcall.run.pipeline import Pipeline
from rowcall.sources.store_source import StoreSource

SECOND = """
name = "second"
[input]
store = "first.db"
[api]
preset = "http"
base_url = "{url}"
[request]
path = "sentiment"
params = {{ text = "{{{{ row.result.label }}}} {{{{ row.text }}}}" }}
[output]
path = "out.jsonl"
columns = {{ again = "label" }}
"""


@pytest.fixture
def steps(project):
    """A folder with both configs and six rows."""
    url = project.api.url
    first = plain_config(url, name="first", more='[response]\nparse = "json"\n')
    for name, text in {"first": first, "second": SECOND.format(url=url)}.items():
        (project.folder / f"{name}.toml").write_text(text)
    rows(project, 6)
    return project


def rows(project, count, **edited):
    with (project.folder / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([f"k{n}", edited.get(f"k{n}", f"{n} is good")] for n in range(count))


async def step(steps, name, **options):
    return await Pipeline(load(steps.folder / f"{name}.toml")).run(Options(**options))


def add(steps, name, table, line):
    path = steps.folder / f"{name}.toml"
    path.write_text(path.read_text().replace(f"[{table}]", f"[{table}]\n{line}", 1))


async def test_the_answers_of_one_job_are_the_records_of_the_next(steps):
    """Each done record comes with its columns, its answer under ``result`` and the first job's key."""
    await step(steps, "first")
    report = await step(steps, "second")
    assert report.done == 6
    written = steps.written()
    assert [row["id"] for row in written] == [f"k{n}" for n in range(6)]
    assert written[0]["result"]["label"] == written[0]["again"] == "positive"
    answers = StoreSource(steps.folder / "second.db", "second.db", None, "answer")
    assert [record.key for record in answers] == [f"k{n}" for n in range(6)]


async def test_what_the_first_job_brings_later_comes_later(steps):
    """Run again, the second job calls for what is new and for what has another answer, and nothing else."""
    await step(steps, "first", limit=2)
    assert (await step(steps, "second")).enqueued.new == 2
    await step(steps, "first")
    second = await step(steps, "second")
    assert (second.enqueued.new, second.enqueued.done) == (4, 2)
    rows(steps, 6, k3="now it is terrible and awful")
    await step(steps, "first")
    second = await step(steps, "second")
    assert (second.enqueued.changed, second.enqueued.done) == (1, 5)
    assert steps.written()[3]["again"] == "negative"


async def test_a_failed_record_is_no_input(steps):
    """Only done records go on."""
    steps.api.poison = {"3 is good": 400}.get
    await step(steps, "first")
    assert (await step(steps, "second")).enqueued.total == 5


async def test_many_records_come_in_groups_each_once(steps, monkeypatch):
    """However the groups fall, each record comes once, in the order of the first job's input."""
    rows(steps, 25)
    await step(steps, "first")
    monkeypatch.setattr("rowcall.sources.store_source.GROUP", 7)
    source = StoreSource(steps.folder / "first.db", "first.db", "first", "result")
    assert [record.key for record in source] == [f"k{n}" for n in range(25)]
    assert source.columns() == ["id", "text", "result"]


async def test_a_third_step_names_its_column(steps):
    """A column that is there already is an error that says how to call the answer."""
    await step(steps, "first")
    await step(steps, "second")
    third = SECOND.format(url=steps.api.url).replace('"second"', '"third"').replace("first.db", "second.db")
    (steps.folder / "third.toml").write_text(third)
    with pytest.raises(InputError, match="already have a column 'result'"):
        await step(steps, "third")
    add(steps, "third", "input", 'result = "answer"')
    assert (await step(steps, "third")).done == 6
    assert set(steps.written()[0]) == {"id", "text", "result", "answer", "again"}


async def test_two_jobs_in_one_store(steps):
    """The store of the job itself needs the other job's name; with it both live in one file."""
    await step(steps, "first")
    steps.config((steps.folder / "second.toml").read_text() + '[store]\npath = "first.db"\n')
    ran = await steps.run("check")
    assert ran.code == 2
    assert "is the store of this job itself" in ran.out
    steps.replace('store = "first.db"', 'store = "first.db"\nkind = "first"')
    assert (await steps.run("check")).code == 0
    assert (await Pipeline(load(steps.folder / "config.toml")).run()).done == 6
    assert json.loads((await steps.run("verify", "--json")).out)["sound"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [("frist", "has no batch job 'frist'"), (None, "does not exist"), ("first", "prune has deleted its record")],
)
async def test_a_store_that_cannot_be_an_input(steps, kind, said):
    """A wrong name, a store that is not there, and pruned records are named with what to do."""
    if kind is not None:
        await step(steps, "first")
        await steps.run("prune", "--config", "first.toml", "--done-before", "2999-01-01", "--yes")
    with pytest.raises(InputError, match=said):
        list(StoreSource(steps.folder / "first.db", "first.db", kind, "result"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('path = "in.csv"', "input.path has no effect with input.store"),
        ("quoting = true", "input.quoting has no effect"),
    ],
)
async def test_a_store_is_no_file(steps, line, said):
    """Keys of files and a store exclude each other."""
    add(steps, "second", "input", line)
    ran = await steps.run("check", "second.toml")
    assert ran.code == 2
    assert said in ran.err
