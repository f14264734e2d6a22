"""The verbs that look, change, write and serve, by the real command."""

from __future__ import annotations

import asyncio
import json
import re

import fastjsonschema
import pytest
from project import Project, some_rows

from rowcall.run.summary import Summary


@pytest.fixture
async def finished(project):
    """A finished run of ten records, of which one failed."""
    project.api.poison = {"sentence number 3 is good"}
    project.write(some_rows(10))
    assert (await project.run("run")).code == 1
    return project


async def test_run_and_status_give_the_same_json(finished):
    """``run --json`` and ``status --json`` print one object that follows the published schema."""
    ran, status = await finished.run("run", "--json"), await finished.run("status", "--json")
    valid = fastjsonschema.compile(Summary.model_json_schema())
    assert valid(json.loads(ran.out)) == valid(json.loads(status.out))
    summary = json.loads(status.out)
    assert (summary["done"], summary["failed"], summary["total"], summary["state"]) == (9, 1, 10, "done")
    assert summary["attempts"] == 12
    assert summary["errors"][0]["reason"] == "http_500"


async def test_errors_say_what_to_do(finished):
    """``errors`` groups failures by reason, with a key, the message and a hint; the same as JSON."""
    text, as_json = await finished.run("errors"), await finished.run("errors", "--json")
    assert "http_500" in text.out
    assert "k3" in text.out
    [group] = json.loads(as_json.out)
    assert set(group) == {"reason", "count", "sample_key", "message", "hint"}
    assert (group["count"], group["sample_key"]) == (1, "k3")
    assert "rowcall retry http_500" in group["hint"]


async def test_show_tells_the_whole_story(finished):
    """``show --json`` has the record, every try and the answer."""
    failed = json.loads((await finished.run("show", "k3", "--json")).out)
    assert failed["status"] == "failed"
    assert failed["payload"] == {"id": "k3", "text": "sentence number 3 is good", "note": "n"}
    assert [one["charged"] for one in failed["tries"]] == [True, True, True]
    done = json.loads((await finished.run("show", "k4", "--json")).out)
    assert done["result"]["label"] == "positive"
    assert done["tries"] == []


async def test_retry_shows_its_selection_first(finished):
    """``retry --dry-run`` names what it would set back and changes nothing; without it, exactly that is set back."""
    dry = await finished.run("retry", "http_500", "--dry-run")
    assert dry.code == 0
    assert "1 failed" in dry.err
    assert "k3" in dry.err
    assert finished.statuses() == {"done": 9, "failed": 1}
    assert (await finished.run("retry", "http_500")).code == 0
    assert finished.statuses() == {"done": 9, "pending": 1}


async def test_retry_without_a_selection_is_a_mistake(finished):
    """``retry`` alone changes nothing and says what to name."""
    ran = await finished.run("retry")
    assert ran.code == 2
    assert "--all-failed" in ran.err


async def test_export_to_stdout(finished):
    """``export -o - --format jsonl --only done`` writes the done rows and nothing else."""
    ran = await finished.run("export", "-o", "-", "--format", "jsonl", "--only", "done")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [row["id"] for row in rows] == [f"k{n}" for n in range(10) if n != 3]
    assert {row["label"] for row in rows} == {"positive"}


async def test_failed_rows_keep_empty_columns(finished):
    """A row without an answer stands in the export with an empty new column."""
    assert [row["label"] for row in finished.exported()][2:5] == ["positive", "", "positive"]


async def test_a_demo_to_start_from(tmp_path):
    """``init --demo`` writes a project that runs as it is, and refuses to overwrite one."""
    project = Project(tmp_path, None)
    assert (await project.run("init", "--demo", "demo")).code == 0
    again = await project.run("init", "--demo", "demo")
    assert again.code == 2
    assert "already" in again.err
    ran = await project.run("run", "demo/config.toml", "-n", "20", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["done"] == 20


async def test_the_mock_verb_serves(tmp_path):
    """``rowcall mock`` announces its address, and a run against it ends well."""
    project = Project(tmp_path, None)
    server = await project.start("mock", "--latency", "1ms", "--errors", "0%", "--rate-limit", "0%")
    announced = (await asyncio.wait_for(server.stderr.readline(), 10)).decode()
    url = re.search(r'base_url = "([^"]+)"', announced)[1]
    project.api = type("Api", (), {"url": url})()
    project.write(some_rows(5))
    assert (await project.run("run")).code == 0
    assert project.statuses() == {"done": 5}
    server.terminate()
    await server.communicate()
    assert server.returncode == 0


async def test_flags_are_variables_too(project):
    """``ROWCALL_LIMIT=2`` is ``--limit 2``, and a flag goes before it."""
    project.write(some_rows(9))
    project.env["ROWCALL_LIMIT"] = "2"
    assert (await project.run("run")).code == 0
    assert project.statuses() == {"done": 2, "pending": 7}
    assert (await project.run("run", "--limit", "3")).code == 0
    assert project.statuses() == {"done": 5, "pending": 4}
