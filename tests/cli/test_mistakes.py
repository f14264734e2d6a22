"""What a person gets wrong: a clear message that names the place and the remedy, the right exit code, no traceback."""

from __future__ import annotations

import pytest
from project import some_rows

from rowcall.mock import MockAPI


@pytest.fixture
async def guarded(project):
    """The project against an API that wants a key."""
    async with MockAPI(latency=0.005, api_key="right") as api:
        project.api = api
        yield project


async def test_wrong_key_costs_one_call(guarded):
    """401 on everything: one call, exit 3, nothing failed and nothing charged, and the message names the key."""
    project = guarded
    project.env["API_KEY"] = "wrong-secret-value"
    project.write(some_rows(30))
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "API_KEY" }')
    ran = await project.run("run")
    assert ran.code == 3
    assert len(project.api.calls) == 1
    assert project.statuses() == {"pending": 30}
    assert set(project.attempts().values()) == {0}
    assert "401" in ran.err
    assert "wrong-secret-value" not in ran.err
    for file in project.folder.iterdir():
        assert b"wrong-secret-value" not in file.read_bytes(), file
    project.env["API_KEY"] = "right"
    assert (await project.run("run")).code == 0


async def test_wrong_url(project):
    """A path that the API does not know: one call, exit 3, nothing failed, and the message says 404."""
    project.write(some_rows(10))
    project.replace("[request.body]", '[request]\npath = "/no/such/path"\n[request.body]')
    ran = await project.run("run")
    assert ran.code == 3
    assert "404" in ran.err
    assert len(project.api.calls) <= 1
    assert project.statuses() == {"pending": 10}


async def test_unknown_host(project):
    """A host that no name server knows: exit 3 once the time to try is over, nothing charged, the host is named."""
    project.write(some_rows(10))
    project.replace(project.api.url, "http://no-such-host.invalid/v1")
    ran = await project.run("run")
    assert ran.code == 3
    assert "no-such-host.invalid" in ran.err
    assert project.statuses() == {"pending": 10}
    assert set(project.attempts().values()) == {0}


async def test_closed_port_from_the_start(project):
    """Nobody listens at all: exit 3, nothing charged, and the message says that it was refused."""
    project.write(some_rows(10))
    await project.api.close_port()
    ran = await project.run("run")
    assert ran.code == 3
    assert "refused" in ran.err
    assert project.statuses() == {"pending": 10}


async def test_unset_variable(project):
    """A key whose variable is not set: exit 2 before anything is read, naming the variable and its line."""
    project.write(some_rows(3))
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "NO_SUCH_VARIABLE" }')
    ran = await project.run("run")
    assert ran.code == 2
    assert "NO_SUCH_VARIABLE" in ran.err
    assert "config.toml:" in ran.err
    assert not (project.folder / "t.db").exists()


async def test_missing_column(project):
    """A placeholder without a column: exit 2 at the start, with the columns there are and a suggestion."""
    project.write(some_rows(3))
    project.replace("row.text", "row.txet")
    ran = await project.run("run")
    assert ran.code == 2
    assert "txet" in ran.err
    assert "id, text, note" in ran.err
    assert not project.api.calls


async def test_mistyped_config_key(project):
    """An unknown key in the config: exit 2 with its line and what was probably meant."""
    project.write(some_rows(3))
    project.replace("concurrency = 8", "concurency = 8")
    ran = await project.run("run")
    assert ran.code == 2
    assert "config.toml:22" in ran.err
    assert "concurrency" in ran.err


async def test_missing_key_column(project):
    """A key column that the input does not have: exit 2, and the columns there are."""
    project.write(some_rows(3))
    project.replace('key = "id"', 'key = "ident"')
    ran = await project.run("run")
    assert ran.code == 2
    assert "ident" in ran.err
    assert not project.api.calls


async def test_missing_input(project):
    """An input that is not there: exit 2, naming the file."""
    project.write(some_rows(3))
    (project.folder / "in.csv").unlink()
    ran = await project.run("run")
    assert ran.code == 2
    assert "in.csv" in ran.err


async def test_empty_input(project):
    """An empty input: exit 2, naming the file."""
    project.write(some_rows(3))
    (project.folder / "in.csv").write_text("")
    ran = await project.run("run")
    assert ran.code == 2
    assert "in.csv" in ran.err


async def test_missing_config(project):
    """No config at all: exit 2 and how to begin."""
    ran = await project.run("run")
    assert ran.code == 2
    assert "rowcall init --demo" in ran.err


@pytest.mark.parametrize("verb", ["run", "status", "errors", "export", "retry"])
async def test_store_that_is_no_database(project, verb):
    """A store that is something else: exit 2, and the file is left as it was."""
    project.write(some_rows(3))
    store = project.folder / "t.db"
    store.write_text("this is no database, " * 100)
    before = store.read_bytes()
    ran = await project.run(verb, *(["--all-failed"] if verb == "retry" else []))
    assert ran.code == 2
    assert "t.db" in ran.err
    assert store.read_bytes() == before


@pytest.mark.parametrize("verb", ["status", "errors", "export", "show"])
async def test_no_store_yet(project, verb):
    """Verbs that look at a store which is not there say so, exit 2, and make none."""
    project.write(some_rows(3))
    ran = await project.run(verb, *(["k1"] if verb == "show" else []))
    assert ran.code == 2
    assert "t.db" in ran.err
    assert not (project.folder / "t.db").exists()


async def test_one_key_for_two_records(project):
    """Two different records with one key: exit 2, naming both lines."""
    rows = some_rows(5)
    rows[4][0] = "k1"
    project.write(rows)
    ran = await project.run("run")
    assert ran.code == 2
    assert "in.csv:3" in ran.err
    assert "in.csv:6" in ran.err


async def test_a_bad_line_keeps_what_came_before(project):
    """A line that cannot be read: exit 2 with its number; the records before it are in the store."""
    project.write(some_rows(5))
    with (project.folder / "in.csv").open("a") as file:
        file.write("k9,too,many,cells,here\n")
    ran = await project.run("run")
    assert ran.code == 2
    assert "in.csv:7" in ran.err
    assert sum(project.statuses().values()) == 5


async def test_unknown_verb_and_flag(project):
    """A mistyped verb or flag is a usage error, exit 2."""
    assert (await project.run("rnu")).code == 2
    assert (await project.run("run", "--concurency", "3")).code == 2


async def test_show_of_an_unknown_key(project):
    """``show`` of a key that is not there says so, exit 2."""
    project.write(some_rows(2))
    await project.run("run")
    ran = await project.run("show", "nobody")
    assert ran.code == 2
    assert "nobody" in ran.err


@pytest.mark.parametrize(
    ("written", "says"), [("no/such/folder/out.csv", "folder"), ("out.xyz", "out.xyz"), ("in.csv", "is the input")]
)
async def test_an_output_that_cannot_be_written(project, written, says):
    """An export that could not be written in the end is refused at the start, before anything is called."""
    project.write(some_rows(3))
    project.replace('"out.csv"', f'"{written}"')
    ran = await project.run("run")
    assert ran.code == 2
    assert says in ran.err
    assert not project.api.calls
    assert not (project.folder / "t.db").exists()


async def test_an_output_that_is_the_store(project):
    """An export that would replace the store is refused, and the store is as it was."""
    project.write(some_rows(3))
    assert (await project.run("run")).code == 0
    ran = await project.run("run", "-o", "t.db")
    assert ran.code == 2
    assert "the store" in ran.err
    assert project.statuses() == {"done": 3}


async def test_a_setting_that_the_api_refuses_fails_nothing(project):
    """400 on everything: the run stops with exit 3, and no record is failed or charged, however many are out."""
    project.api.poison = lambda text: 400
    project.write(some_rows(60), concurrency=32)
    ran = await project.run("run")
    assert ran.code == 3
    assert project.statuses() == {"pending": 60}
    assert set(project.attempts().values()) == {0}
