"""``rowcall run --rehearse``: the whole config against the fake API, and nothing of it remains."""

from __future__ import annotations

import asyncio
import re

import pytest
from project import some_rows

from rowcall.cli.running.rehearsal import rehearse
from rowcall.config import load
from rowcall.engine.options import Options
from rowcall.model.errors import Exit, RowcallError
from rowcall.run.pipeline import Pipeline

KEY = "sk-the-very-secret-value"


@pytest.fixture
def keyed(project, monkeypatch):
    """A project with a key, without faults, with a latency of its own in rehearsals."""
    monkeypatch.setenv("API_KEY", KEY)
    project.write(some_rows(40))
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "API_KEY" }')
    project.replace(
        "[request.body]", '[api.mock]\nlatency = "20ms"\nerrors = "0%"\nrate_limited = "0%"\n[request.body]'
    )
    return project


def config_of(project, **overrides):
    return load(project.folder / "config.toml", overrides={k.replace("__", "."): v for k, v in overrides.items()})


async def rehearsed(project, capsys, *, longest=20.0, options=Options(), **overrides):
    config = config_of(project, **overrides)
    code = await asyncio.to_thread(rehearse, config, options, quiet=True, longest=longest)
    said = capsys.readouterr()
    assert KEY not in said.out + said.err
    return code, said.out


async def test_nothing_is_sent_and_nothing_remains(keyed, capsys):
    """The API is not called; there is no store and no export afterwards; it says how long the real run takes."""
    before = sorted(path.name for path in keyed.folder.iterdir())
    code, out = await rehearsed(keyed, capsys)
    assert code is Exit.DONE
    assert not keyed.api.calls
    assert sorted(path.name for path in keyed.folder.iterdir()) == before
    assert "t: rehearsed 40 records in " in out
    assert "20ms per call as [api.mock] latency says" in out
    assert "40 calls (200: 40)" in out
    assert re.search(r"the real run will take about \S+ for 40 records: \S+ in the rehearsal", out)
    assert "about " in out
    assert "not tested: what the real API answers" in out


async def test_no_export_is_written_over(keyed, capsys):
    """A file named for the export of the real run stays what it was."""
    answers = keyed.folder / "answers.csv"
    answers.write_text("paid for")
    assert (await rehearsed(keyed, capsys, options=Options(output=answers)))[0] is Exit.DONE
    assert answers.read_text() == "paid for"


@pytest.mark.parametrize("args", [["--json"], ["--events", "-"]])
async def test_what_tells_of_a_real_run_is_refused(keyed, args):
    """A summary or events of what never happened are not printed: exit 2."""
    keyed.env["API_KEY"] = KEY
    ran = await asyncio.to_thread(keyed._call, ["run", "--rehearse", *args])
    assert ran.code == 2
    assert "do not go together" in ran.err


async def test_the_store_is_as_it_was(keyed, capsys):
    """What is done is not rehearsed, and stays as it is; what is left is what the real run has to do."""
    await Pipeline(config_of(keyed)).run(Options(limit=30))
    before = keyed.sql("SELECT id, status, attempts, epoch FROM jobs"), len(keyed.sql("SELECT * FROM runs"))
    calls = len(keyed.api.calls)
    _, out = await rehearsed(keyed, capsys)
    assert "rehearsed 10 records" in out
    assert "for 10 records" in out
    assert len(keyed.api.calls) == calls
    assert (keyed.sql("SELECT id, status, attempts, epoch FROM jobs"), len(keyed.sql("SELECT * FROM runs"))) == before
    await Pipeline(config_of(keyed)).run()
    assert "the real run has nothing to do" in (await rehearsed(keyed, capsys))[1]


async def test_what_would_go_wrong(keyed, capsys):
    """Rows that cannot be rendered are named with their lines, in the whole input; exit 1."""
    rows = some_rows(40)
    rows[35][2] = ""
    keyed.rows(rows)
    keyed.replace("{{ row.text }}", "{{ 1 / row.note | length }} {{ row.text }}")
    code, out = await rehearsed(keyed, capsys)
    assert code is Exit.SOME_FAILED
    assert "the real run would meet 1 problem" in out
    assert "in.csv:37: request.body.messages[1].content: division by zero" in out


async def test_it_ends_in_time(keyed, capsys):
    """A long run is cut, and its length follows from its limits where little was seen."""
    _, out = await rehearsed(keyed, capsys, longest=1.0, pace__requests="60/min")
    assert "about 40s for 40 records: limited by [pace] requests = 60/min" in out
    assert "would stop" not in out


async def test_it_ends_before_anything_is_seen(keyed, capsys, monkeypatch):
    """One that is cut before its first record does not say that there is nothing to do."""

    async def read_for_ever(producer):
        await asyncio.Event().wait()

    monkeypatch.setattr("rowcall.engine.producer.Producer.run", read_for_ever)
    _, out = await rehearsed(keyed, capsys, longest=0.1)
    assert "too short to say anything" in out


async def test_faults_are_those_of_the_config(keyed, capsys):
    """The faults of [api.mock] happen in it."""
    _, out = await rehearsed(keyed, capsys, longest=1.0, api__mock__errors="20%")
    assert re.search(r"calls \(200: \d+, 500: \d+\)", out)


@pytest.mark.parametrize("path", ["/search/{{ row.id }}", ""])
async def test_an_api_of_another_shape(keyed, capsys, path):
    """Whatever the path and the contract of the answer, a 2xx of the fake API counts."""
    text = (keyed.folder / "config.toml").read_text()
    a, b = text.index("[request.body]"), text.index("[output]")
    request = f'[request]\npath = "{path}"\n[response]\nextract = "some.where"\nschema = {{ type = "object" }}\n'
    keyed.config(text.replace(text[a:b], request).replace('"openai"', '"http"'))
    code, out = await rehearsed(keyed, capsys)
    assert code is Exit.DONE
    assert "(200: 40)" in out


async def test_a_handler_cannot_be_rehearsed(keyed, capsys):
    """Its calls may go anywhere, so none is made."""
    text = (keyed.folder / "config.toml").read_text()
    a, b = text.index("[request.body]"), text.index("[output]")
    keyed.config(text.replace(text[a:b], '[handler]\npath = "tasks.py:label"\n'))
    with pytest.raises(RowcallError, match="cannot be rehearsed"):
        await rehearsed(keyed, capsys)


async def test_the_command(keyed):
    """``run --rehearse`` does it, says that nothing is sent, and leaves no store."""
    keyed.env["API_KEY"] = KEY
    ran = await keyed.run("run", "--rehearse", "-n", "10")
    assert ran.code == 0, ran.err
    assert "Rehearsal, nothing is sent. t: reading in.csv" in ran.err
    assert "rehearsed 10 records" in ran.out
    assert not keyed.api.calls
    assert not (keyed.folder / "t.db").exists()
