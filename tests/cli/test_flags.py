"""Ways in: settings by flag, a file of variables, a sample; and a way out: events as JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import fastjsonschema
import pytest
from project import some_rows

from rowcall.cli.running.event_log import EventLog, line_of, name_of, schema
from rowcall.config import load
from rowcall.engine.options import Options
from rowcall.mock import MockAPI
from rowcall.model.errors import ConfigError, OutputError
from rowcall.model.events import CallEnded, Event, Joined, LateOutcome, LoopBlocked, Settled, Stopping
from rowcall.model.job import Record
from rowcall.model.outcome import Action, Decision, Failure, FailureClass
from rowcall.run.pipeline import Pipeline
from rowcall.sources.sample import Sample

VALID = fastjsonschema.compile(schema())
KEY = "sk-the-very-secret-value"


class Rows:
    """A source of records by number."""

    name, rereadable, uniform, skipped, quarantine = "rows", True, True, 0, None

    def __init__(self, numbers):
        self.numbers = numbers

    def columns(self):
        return ["id"]

    def __iter__(self):
        return (Record({"id": str(n)}, f"rows:{n}") for n in self.numbers)


def sample(numbers, count):
    return [int(record.data["id"]) for record in Sample(Rows(numbers), lambda record: record.data["id"], count)]


def test_a_sample_is_stable():
    """The same records each time, in the order of the input, whatever the order in which they were chosen."""
    first = sample(range(1000), 50)
    assert first == sorted(first) == sample(range(1000), 50)
    assert len(first) == 50
    assert set(sample(range(999, -1, -1), 50)) == set(first)


def test_a_sample_is_random():
    """It is spread over the input."""
    chosen = sample(range(10_000), 1000)
    assert all(70 < sum(low <= n < low + 1000 for n in chosen) < 130 for low in range(0, 10_000, 1000))


def test_samples_are_nested():
    """A larger sample holds a smaller one; one record more in the input changes it by one record at most."""
    small = set(sample(range(1000), 20))
    assert small < set(sample(range(1000), 60))
    assert len(small - set(sample(range(1001), 20))) <= 1
    assert sample(range(7), 100) == list(range(7))


def test_a_key_that_comes_twice_is_one():
    """Repeated records count once, and all of them come through."""
    assert Counter(sample([*range(10), *range(10)], 4)).most_common()[0][1] == 2
    assert len(sample([*range(10), *range(10)], 4)) == 8


@pytest.fixture
async def config(tmp_path):
    async with MockAPI(latency=0.005) as api:
        (tmp_path / "in.csv").write_text("id,text\n" + "".join(f"k{n},number {n} is good\n" for n in range(30)))
        (tmp_path / "config.toml").write_text(
            f'[input]\npath = "in.csv"\nkey = "id"\n[api]\npreset = "openai"\nbase_url = "{api.url}"\n'
            'api_key = { env = "API_KEY" }\n[request.body]\nmodel = "m"\n'
            'messages = [{ role = "user", content = "{{ row.text }}" }]\n[output]\npath = "out.csv"\n'
            '[retry]\nattempts = 2\nbackoff = { first = "10ms" }\n'
        )
        (tmp_path / "my.env").write_text(f"API_KEY={KEY}\n")
        config = load(tmp_path / "config.toml", env_file=tmp_path / "my.env")
        yield config, api


def lines_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_events_of_a_run(config, tmp_path):
    """Each line follows the schema; every call has its begin and end, the counts add up, the answers are left out."""
    config, api = config
    api.poison = {"number 7 is good"}
    path = tmp_path / "events.ndjson"
    with EventLog(path) as lines:
        pipeline = Pipeline(config, emit=lines)
        lines.began(config, pipeline.view.concurrency)
        lines.ended(await pipeline.run())
    said = lines_in(path)
    for line in said:
        VALID(line)
    counts = Counter(line["event"] for line in said)
    assert counts["call_began"] == counts["call_ended"] == counts["request_ended"] == 31
    assert (said[0]["event"], said[-1]["event"]) == ("run_began", "run_ended")
    assert (said[-1]["done"], said[-1]["failed"], said[-1]["left"], said[-1]["reason"]) == (29, 1, 0, "done")
    failed = [line for line in said if line["event"] == "settled" and line["action"] == "fail"]
    assert [(line["key"], line["reason"], line["http_status"]) for line in failed] == [("k7", "http_500", 500)]
    assert "positive" not in path.read_text()
    assert KEY not in path.read_text()


async def test_lines_are_added(config, tmp_path):
    """A second run adds its lines to those of the first."""
    path = tmp_path / "events.ndjson"
    for _ in range(2):
        with EventLog(path) as lines:
            lines.ended(await Pipeline(config[0]).run())
    assert [line["event"] for line in lines_in(path)] == ["run_ended", "run_ended"]


def test_each_event_has_its_line():
    """Events that a run rarely has follow the schema too, and no event is without a name in it."""
    failure = Failure(FailureClass.SERVER, "http_500", "no\n\x1b[31m")
    for event in (
        Joined(3),
        LateOutcome("k", 2),
        LoopBlocked(1.5, "tasks.py:3"),
        Stopping("interrupted", "", 3),
        Settled("k", Action.RELEASE, None),
        CallEnded("k", failure, Decision(Action.RETRY, wait=1.23456)),
    ):
        VALID({"at": "2026-01-01T00:00:00.000Z", "event": name_of(type(event)), **line_of(event)})
    assert line_of(Joined(3)) == {"pass": 3}
    names = set(json.dumps(schema()).split('"'))
    assert {name_of(kind) for kind in Event.__args__} <= names


def test_events_that_cannot_be_written(tmp_path):
    """A file that cannot be made is an error at the start; one that fails later ends the lines and nothing else."""
    with pytest.raises(OutputError, match="no/such"):
        EventLog(tmp_path / "no/such/folder")
    if Path("/dev/full").exists():
        with EventLog(Path("/dev/full")) as lines:
            lines(Joined(1))
            lines(Joined(2))


async def test_a_sample_is_run_and_the_export_has_all(config):
    """``--sample`` calls for those records alone; the export has every record, and the rest can follow."""
    config, api = config
    report = await Pipeline(config).run(Options(sample=10))
    assert (report.done, report.total, report.strays, report.rows) == (10, 10, 0, 30)
    report = await Pipeline(config).run(Options(sample=10))
    assert len(api.calls) == 10
    assert (await Pipeline(config).run()).done == 30
    assert len(api.calls) == 30


def test_a_file_of_variables(tmp_path, monkeypatch):
    """--env-file goes before .env, and the environment before both."""
    monkeypatch.delenv("API_KEY", raising=False)
    (tmp_path / "config.toml").write_text(
        '[input]\npath = "a.csv"\n[api]\npreset = "http"\nbase_url = "http://a"\napi_key = { env = "API_KEY" }\n'
    )
    (tmp_path / ".env").write_text("API_KEY=dotenv\n")
    (tmp_path / "other").write_text("API_KEY=other\n")
    assert load(tmp_path / "config.toml").resolve().api.api_key.reveal() == "dotenv"
    config = load(tmp_path / "config.toml", env_file=tmp_path / "other")
    assert config.resolve().api.api_key.reveal() == "other"
    monkeypatch.setenv("API_KEY", "environment")
    assert config.resolve().api.api_key.reveal() == "environment"
    (tmp_path / "other").unlink()
    monkeypatch.delenv("API_KEY")
    with pytest.raises(ConfigError, match="API_KEY"):
        load(tmp_path / "config.toml", env_file=tmp_path / "gone").resolve()


async def test_the_real_command(project):
    """--set, --env-file, --sample, --events and --json together; a variable sets what a flag does."""
    project.write(some_rows(20))
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "MY_KEY" }')
    (project.folder / "keys").write_text(f"MY_KEY={KEY}\n")
    project.env |= {"ROWCALL_SAMPLE": "6", "ROWCALL_ENV_FILE": "keys"}
    ran = await project.run("run", "--set", "pace.requests=50000/min", "--set", "name=other", "--events", "-")
    assert ran.code == 0, ran.err
    assert "other: reading in.csv (8 at a time, 50000/min)" in ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert lines[-1]["done"] == 6
    assert KEY not in ran.out + ran.err
    assert project.api.calls[0].headers["Authorization"] == f"Bearer {KEY}"
    ran = await project.run("run", "--events", "-", "--json")
    assert ran.code == 2
    assert "--json and --events cannot both go to stdout" in ran.err


async def test_settings_that_make_no_sense(project):
    """A --set without a key, an unknown key and a file of variables that is not there: exit 2, each named."""
    project.write(some_rows(2))
    for args, says in (
        (("--set", "pace"), "'pace'"),
        (("--set", "pace.concurency=3"), 'did you mean "concurrency"?'),
        (("--env-file", "nowhere"), "nowhere"),
    ):
        ran = await project.run("run", *args)
        assert ran.code == 2
        assert says in ran.err
