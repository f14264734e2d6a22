"""``[handler]``: the user's own function, by the real command."""

from __future__ import annotations

import asyncio
import signal

import pytest
from project import some_rows

CONFIG = """
name = "t"
[input]
path = "in.csv"
key = "id"
[api]
preset = "openai"
base_url = "{url}"
timeout = "5s"
[handler]
path = "tasks.py:label"
[output]
path = "out.csv"
columns = {{ label = "label" }}
[pace]
concurrency = 8
[retry]
backoff = {{ first = "50ms", max = "200ms" }}
[stop]
first_success = "1s"
grace = "5s"
"""

TASKS = """
import helpers

async def label(row, call):
    judged = (await call.get("/sentiment", params={"text": row["text"]})).json()
    return {"label": helpers.shout(judged["label"])}
"""


@pytest.fixture
def handled(project):
    """A project whose config has a handler."""
    project.rows(some_rows(30))
    project.config(CONFIG.format(url=project.api.url))
    (project.folder / "tasks.py").write_text(TASKS)
    (project.folder / "helpers.py").write_text("def shout(text):\n    return text.upper()\n")
    return project


async def test_a_handler_runs_from_the_config(handled):
    """The function is run for each record, with modules beside it; the same command again calls nothing."""
    ran = await handled.run("run")
    assert ran.code == 0, ran.err
    assert {row["label"] for row in handled.exported()} == {"POSITIVE"}
    assert (await handled.run("run")).code == 0
    assert len(handled.api.calls) == 30
    assert not (handled.folder / "__pycache__" / "tasks.cpython-311.pyc").exists()


async def test_another_version_asks(handled):
    """A raised version calls nothing until the user says what to do; another text of the function is none of it."""
    await handled.run("run")
    (handled.folder / "tasks.py").write_text(TASKS + "# edited\n")
    assert (await handled.run("run")).code == 0
    handled.replace('label"\n[output]', 'label"\nversion = "2"\n[output]')
    ran = await handled.run("run")
    assert (ran.code, len(handled.api.calls)) == (2, 30)
    assert "--if-changed" in ran.err
    assert (await handled.run("run", "--if-changed", "redo")).code == 0
    assert len(handled.api.calls) == 60


async def test_columns_of_the_handler(handled):
    """An edit of a column that the handler is not given calls nothing."""
    handled.replace('label"\n[output]', 'label"\ncolumns = ["text"]\n[output]')
    await handled.run("run")
    handled.rows(some_rows(30, note="edited"))
    assert (await handled.run("run")).code == 0
    assert len(handled.api.calls) == 30
    assert {row["note"] for row in handled.exported()} == {"edited"}


MISTAKES = {
    "no such file": ("tasks.py", None, "config.toml:11: there is no file tasks.py"),
    "no such function": ("tasks.py", "def lable(row, call): ...", "config.toml:11: tasks.py has no function 'label'"),
    "suggested": ("tasks.py", "def lable(row, call): ...", "did you mean 'lable'?"),
    "another signature": ("tasks.py", "def label(row): ...", "config.toml:11: label does not take (row, call)"),
    "no function": ("tasks.py", "label = 3", "tasks.py has no function 'label'"),
    "it breaks": ("tasks.py", "x = 1\ny = x / 0\n", "tasks.py:2 cannot be imported: ZeroDivisionError: division by"),
    "it breaks inside": ("helpers.py", "import nowhere\n", "tasks.py:2 cannot be imported: ModuleNotFoundError"),
    "it exits": ("tasks.py", "import sys\nsys.exit(3)\n", "tasks.py:2 cannot be imported: SystemExit: 3"),
    "no Python": ("tasks.py", "def label(row, call:\n", "tasks.py:1 cannot be imported: SyntaxError"),
}


@pytest.mark.parametrize("verb", ["run", "check"])
@pytest.mark.parametrize("mistake", MISTAKES)
async def test_mistakes_are_found_before_a_call(handled, mistake, verb):
    """What is wrong with the function is said at the start, with the line, exit 2, and nothing is called or stored."""
    file, text, message = MISTAKES[mistake]
    if text is None:
        (handled.folder / file).unlink()
    else:
        (handled.folder / file).write_text(text)
    ran = await handled.run(verb)
    assert ran.code == 2
    assert message in ran.err + ran.out
    assert handled.api.calls == []
    assert not (handled.folder / "t.db").exists()


async def test_a_column_that_is_not_there(handled):
    """Columns of the handler are held against the input, by run and by check."""
    handled.replace('label"\n[output]', 'label"\ncolumns = ["txt"]\n[output]')
    for verb in ("run", "check"):
        ran = await handled.run(verb)
        assert ran.code == 2
        assert "config.toml:12: handler.columns names 'txt'" in ran.err + ran.out


async def test_check_and_show_know_of_handlers(handled):
    """Check finds nothing wrong and can make one real call; show says who makes the requests."""
    ran = await handled.run("check")
    assert (ran.code, handled.api.calls) == (0, [])
    assert "30 records, all keys unique, requests made by the handler" in ran.out
    probed = await handled.run("check", "--probe")
    assert (probed.code, len(handled.api.calls)) == (0, 1)
    assert '{"label":"POSITIVE"}' in probed.out
    await handled.run("run")
    shown = await handled.run("show", "k1")
    assert shown.code == 0
    assert "tasks.py:label" in shown.out


async def test_errors_show_the_traceback(handled):
    """A record whose function broke is failed; its history says in which line."""
    (handled.folder / "tasks.py").write_text(
        TASKS.replace("    return", '    if row["id"] == "k3":\n        raise ValueError("odd row")\n    return')
    )
    ran = await handled.run("run")
    assert ran.code == 1
    (found,) = handled.summary(await handled.run("errors", "--json"))
    assert (found["reason"], found["sample_key"], found["message"]) == ("handler_error", "k3", "ValueError: odd row")
    (body,) = handled.sql("SELECT body FROM tries")[0]
    assert 'tasks.py", line 7, in label' in body


async def test_stop_run_is_exit_3(handled):
    """A function that stops the run ends it with exit code 3, nothing failed, and says why."""
    (handled.folder / "tasks.py").write_text(
        "import rowcall\n\ndef label(row, call):\n    raise rowcall.StopRun('no credit')\n"
    )
    ran = await handled.run("run")
    assert ran.code == 3
    assert "no credit" in ran.err
    assert handled.statuses() == {"pending": 30}


async def test_a_blocked_function_does_not_hold_the_exit(handled):
    """A plain function that blocks for a minute is left behind by the second Ctrl+C."""
    (handled.folder / "tasks.py").write_text(
        "import time\n\ndef label(row, call):\n    call.get('/sentiment', params={'text': 'x'})\n    time.sleep(60)\n"
    )
    process = await handled.start("run")
    await asyncio.wait_for(handled.api.wait_for_calls(1), 20)
    process.send_signal(signal.SIGINT)
    read = b""
    while b"Stopping" not in read:
        read += await process.stderr.read(1000)
    process.send_signal(signal.SIGINT)
    ran = await asyncio.wait_for(handled.end(process), 10)
    assert ran.code == 130
    assert handled.statuses() == {"pending": 30}


async def test_no_transaction_is_open_while_a_handler_runs(handled):
    """While functions run and their requests are on the wire, another process can lock the store."""
    (handled.folder / "tasks.py").write_text(
        "import pathlib, sqlite3\n\n"
        "def lock():\n"
        "    connection = sqlite3.connect(pathlib.Path(__file__).parent / 't.db', timeout=1, isolation_level=None)\n"
        "    connection.execute('BEGIN IMMEDIATE')\n"
        "    connection.execute('ROLLBACK')\n"
        "    connection.close()\n\n"
        "async def label(row, call):\n"
        "    lock()\n"
        "    await call.get('/sentiment', params={'text': row['text']})\n"
        "    lock()\n"
    )
    ran = await handled.run("run")
    assert ran.code == 0, ran.err
    assert handled.statuses() == {"done": 30}
