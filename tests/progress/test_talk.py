"""The words at the start and the end of a run, and what to do about each reason."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from rowcall.cli.running.next_commands import NextCommands
from rowcall.cli.running.run import run
from rowcall.cli.running.run_messages import answers_kept_text, finish_text, input_text, start_text, stopping_text
from rowcall.cli.shared.failure_hints import HINTS, call_hint, hint_for, stop_hint
from rowcall.cli.shared.job_address import JobAddress
from rowcall.client import wire_errors as wire
from rowcall.config import load
from rowcall.engine.options import Report
from rowcall.engine.stop_reasons import Ending
from rowcall.model.events import InputRead
from rowcall.model.job import Status
from rowcall.model.outcome import Action, Usage
from rowcall.model.run_stats import RunStats
from rowcall.providers.reply_reasons import REASONS
from rowcall.store.types import Counts, Enqueued, ErrorGroup

SOURCES = Path(__file__).parents[2] / "src" / "rowcall"

CONFIG = """
name = "reviews"
[input]
path = "reviews.csv"
[api]
preset = "openai"
api_key = { env = "MY_KEY" }
[request.body]
model = "m"
messages = []
[pace]
requests = "500/min"
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.toml").write_text(CONFIG)
    return load(Path("config.toml"))


def ended(report, config):
    return finish_text(report, config, NextCommands.for_config(config.file))


def report(reason="done", message="", *, done=3, failed=0, left=0, **more):
    tally = RunStats()
    tally.calls, tally.usage = done + failed, Usage(1_000, 200, 500, 20)
    tally.by_status.update({"200": done} | ({"500": failed} if failed else {}))
    tally.settled.update({Action.DONE: done, Action.FAIL: failed})
    tally.latencies.add(0.05)
    counts = Counts({Status.DONE: done, Status.FAILED: failed, Status.PENDING: left})
    facts = {"strays": 0, "joined": False, "output": None, "rows": 0, "elapsed": 2.0}
    return Report("reviews", Ending(reason, message), Enqueued(), tally, counts, **facts | more)


def test_start(config):
    """What is read, and the limits in force; a lower concurrency than asked for with its cause."""
    assert start_text(config, 32) == "reviews: reading reviews.csv (32 at a time, 500/min)"
    assert "20 at a time instead of 32 because ulimit -n" in start_text(config, 20)


def test_what_the_input_brought():
    """Only what there is, and one record is one record."""
    nothing = dict.fromkeys(("restored", "done", "failed", "waiting", "cancelled", "repeated"), 0)
    assert input_text(InputRead(total=1, new=1, changed=0, **nothing)) == "1 record: 1 new"
    assert (
        input_text(InputRead(total=1_012, new=1_000, changed=12, **nothing)) == "1,012 records: 1,000 new, 12 changed"
    )


def test_stopping():
    """The answer to Ctrl+C: what is waited for, how long, and how not to."""
    assert stopping_text(31, 30) == "Stopping: 31 calls in flight, waiting up to 30s; press Ctrl+C again to drop them"
    assert stopping_text(1, 30) == "Stopping: 1 call in flight, waiting up to 30s; press Ctrl+C again to drop it"
    assert stopping_text(0, 30) == "Stopping"


def test_finished(config, tmp_path):
    """Totals, rate, percentiles, replies by status, tokens, and the file that was written."""
    text = ended(report(output=tmp_path / "labels.csv", rows=1), config)
    assert text.splitlines() == [
        "reviews: finished in 2s",
        "  this run: 3 done, 0 failed; in all: 3 done, 0 failed, 0 left",
        "  3 calls, 1.5/s  p50 50ms  p95 50ms  p99 50ms  (200: 3)",
        "  tokens: 1,000 in (500 cached), 200 out (20 reasoning)",
        "  labels.csv: 1 row",
    ]


def test_failures_by_reason_with_a_sample(config):
    """Each reason on a line, cut and cleaned; a few of many; and the command that says more."""
    groups = [ErrorGroup("http_500", 7, "k\x1b[31m1", "HTTP 500: " + "x" * 300)]
    groups += [ErrorGroup(f"http_4{n}", 1, "k2", "HTTP 4xx: no") for n in range(10, 16)]
    lines = ended(report(failed=13, errors=groups), config).splitlines()
    assert lines[4].startswith("  7 failed: http_500, for example k [31m1: HTTP 500: xxx")
    assert lines[4].endswith("...")
    assert len(lines[4]) < 180
    assert lines[9] == "  ... and 2 more reasons"
    assert lines[-1] == "See what failed and what to do with: rowcall errors"
    first = ended(report("limit", done=0, failed=3, left=7, errors=groups), config).splitlines()
    assert first[-2:] == ["See what failed and what to do with: rowcall errors", "Resume with: rowcall run"]


@pytest.mark.parametrize(
    ("typed", "going_on"),
    [
        ("-c 8 --rate 500/min --processes 2", "--concurrency 8 --rate 500/min --processes 2"),
        ("--sample 10 --all --batch 'new ones'", "--sample 10 --batch 'new ones' --all"),
        ("-n 5 --now --retry-failed --if-changed redo --json -q --yes", ""),
        (
            "--set stop.grace=5s --set 'output.columns={ a = \"b\" }'",
            "--set stop.grace=5s --set 'output.columns={ a = \"b\" }'",
        ),
        ("--set api.headers.X-Key=secret", "--set api.headers.X-Key=<as before>"),
        ("--set store.path=postgresql://me:secret@host/db", "--set store.path=<as before>"),
        ("--set store.path=other.db", "--set store.path=other.db"),
        ("--env-file {file} -o 'my out.csv'", "--env-file {file} --output 'my out.csv'"),
        ("--max-cost 3.5", "--max-cost 3.5"),
    ],
)
def test_going_on_takes_the_flags_that_last(config, tmp_path, typed, going_on):
    """It repeats what each run is to have, nothing of one run alone, and no value that may be secret."""
    (tmp_path / "keys").touch()
    given = shlex.split(typed.replace("{file}", str(tmp_path / "keys")))
    commands = NextCommands.for_config(Path("config.toml")).with_flags(run.make_context("run", given).params)
    last = finish_text(report("interrupted", left=5), config, commands).splitlines()[-1]
    assert last == " ".join(
        filter(None, ["Resume with: rowcall run", going_on.replace("{file}", str(tmp_path / "keys"))])
    )


def test_going_on_with_more_to_spend(config):
    """Where the money was used up it names a new limit in the place of the old one."""
    commands = NextCommands.for_config(Path("config.toml")).with_flags(
        run.make_context("run", ["--max-cost", "1"]).params
    )
    dear = report("max_cost", left=5)
    dear = replace(dear, counts=replace(dear.counts, cost=2_000_000_000))
    spent = finish_text(dear, config, commands).splitlines()[-1]
    assert spent == "Resume with: rowcall run --max-cost 4"


def test_a_redo_that_had_nothing_to_do():
    """Where answers were kept for this request before, it says how to have records called again."""
    commands = NextCommands.for_config(Path("other.toml"))
    assert not answers_kept_text(report(), commands)
    idle = report()
    idle.tally.calls = 0
    assert answers_kept_text(idle, commands).endswith(": rowcall retry --done --config other.toml --batch B")


def test_strays(config):
    """Records that left the input are counted in the right number."""
    assert "  1 record is no longer in the input and was skipped" in ended(report(strays=1), config)
    assert "  2 records are no longer in the input and were skipped" in ended(report(strays=2), config)


def test_the_next_command_is_one_for_a_shell(config):
    """The config is named as the shell reads it, and not at all where it is the usual one."""
    paused = report("interrupted", left=5)
    assert ended(paused, config).splitlines()[-1] == "Resume with: rowcall run"
    folder = Path("my jobs")
    folder.mkdir()
    (folder / "a b.toml").write_text(CONFIG)
    other = load(folder / "a b.toml")
    assert ended(paused, other).splitlines()[-1] == "Resume with: rowcall run 'my jobs/a b.toml'"
    assert ended(report(failed=1), other).endswith("rowcall errors --config 'my jobs/a b.toml'")


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("bad_key", ["check [api] api_key", "config.toml:7: [api] api_key is from the variable MY_KEY"]),
        ("no_credit", ["top it up", "config.toml:7: [api] api_key is from the variable MY_KEY"]),
        ("forbidden", ["permissions", "the variable MY_KEY"]),
        (
            "not_found",
            [
                "config.toml does not set it: [api] base_url = https://api.openai.com/v1",
                "config.toml does not set it: [request] path = /chat/completions",
            ],
        ),
        ("model_not_found", ["config.toml:9: [request] body.model = m"]),
        ("unreachable", ["Check the network", "[api] base_url = https://api.openai.com/v1"]),
        ("disk_full", ["Free some space"]),
        ("handler_error", ["See a traceback with: rowcall show KEY"]),
        ("tls_untrusted", ["certificate"]),
    ],
)
def test_a_stop_says_where_to_mend_it(config, reason, says):
    """The reason's advice, and the setting to look at with its line in the config or the variable behind it."""
    text = ended(report(reason, "HTTP 4xx: no", left=7), config)
    assert text.startswith("reviews: stopped after 2s: HTTP 4xx: no\n")
    for words in says:
        assert words in text
    assert text.endswith("Resume with: rowcall run")


def test_a_key_that_is_not_set_or_written_elsewhere(config):
    """Without a key the text says how to give one; one from a file or a command is named, and never shown."""
    for old, says in {
        "": 'not set; set it with api_key = { env = "NAME" }',
        'api_key = { file = "~/key" }': "from the file ~/key",
        'api_key = { command = "pass key" }': "from the command pass key",
    }.items():
        Path("config.toml").write_text(CONFIG.replace('api_key = { env = "MY_KEY" }', old))
        assert f"[api] api_key is {says}" in ended(report("bad_key", left=1), load(Path("config.toml")))


def test_what_a_person_wanted_needs_no_advice(config):
    """The end, a limit and a pause come without advice."""
    for reason in ("done", "limit", "interrupted", "terminated", "hung_up"):
        assert not stop_hint(reason)


def reasons_of_the_wire():
    return {cls.reason for cls in vars(wire).values() if isinstance(cls, type) and issubclass(cls, wire.WireError)}


def reasons_in_the_code():
    """Reason codes that stand in the code beside a failure class."""
    for path in SOURCES.rglob("*.py"):
        yield from re.findall(r'FailureClass\.[A-Z_]+, "([a-z_]+)"', path.read_text())


def test_every_reason_has_a_hint():
    """No reason that a failure can have is without advice of its own."""
    known = set(REASONS) | reasons_of_the_wire() | set(reasons_in_the_code()) | {"poison", "failed_by_handler"}
    assert known - set(HINTS) == set()


@pytest.mark.parametrize("reason", [*HINTS, "http_500", "http_418", "made_up"])
def test_a_call_that_was_made_alone_has_nothing_to_retry(reason):
    """Its advice names no command over stored records, and speaks of no other calls."""
    hint = call_hint(reason)
    assert hint
    assert "rowcall retry" not in hint.replace("rowcall retry KEY", "")
    assert "while others" not in hint or reason in ("tls_failed", "rate_limited")
    assert hint[-1] not in ",;:"


def test_commands_of_advice_find_the_job():
    """With another config, or with a store, each command names it as the shell reads it; a store takes workers."""
    advice = "see rowcall show KEY, then rowcall retry http_500; rowcall errors; then rowcall run"
    assert JobAddress().fill_in(advice) == advice
    assert JobAddress(Path("my job.toml")).fill_in(advice) == (
        "see rowcall show KEY --config 'my job.toml', then rowcall retry http_500 --config 'my job.toml'; "
        "rowcall errors --config 'my job.toml'; then rowcall run 'my job.toml'"
    )
    assert JobAddress(store=Path("a.db")).fill_in(advice) == (
        "see rowcall show KEY --store a.db, then rowcall retry http_500 --store a.db; "
        "rowcall errors --store a.db; then rowcall work --store a.db"
    )


@pytest.mark.parametrize("reason", [*HINTS, "http_500", "http_418", "made_up"])
def test_a_hint_is_a_line_that_can_be_typed(reason):
    """A hint is one line that names the reason in its command, and shows no placeholder."""
    hint = hint_for(reason)
    assert hint
    assert "{" not in hint
    assert "\n" not in hint
    for command in re.findall(r"rowcall retry (\S+)", hint):
        assert command in (reason, "KEY")
