"""A store that somebody else has added code to is refused before anything in it acts."""

from __future__ import annotations

import pytest
from project import some_rows
from quickproject import QuickProject

from rowcall.mock import MockAPI

SPY = """
    CREATE FUNCTION rowcall.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER spy BEFORE UPDATE ON rowcall.jobs FOR EACH ROW EXECUTE FUNCTION rowcall.f()
"""


@pytest.fixture
async def project(tmp_path):
    """A finished run of five records."""
    async with MockAPI(latency=0.001) as api:
        project = QuickProject(tmp_path, api)
        project.write(some_rows(5))
        assert (await project.run("run")).code == 0
        yield project


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE TRIGGER spy AFTER UPDATE ON jobs BEGIN DELETE FROM results; END", "trigger spy"),
        ("CREATE VIEW more AS SELECT * FROM jobs", "view more"),
        ("DROP VIEW records", "view records"),
        ("DROP VIEW records; CREATE VIEW records AS SELECT 1 AS id", "view records"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "status", "cancel"])
async def test_a_foreign_trigger_or_view(project, statement, named, verb):
    """A SQLite store with a trigger or view that rowcall did not make is refused by every verb, with exit 2."""
    for each in statement.split("; ") if "TRIGGER" not in statement else [statement]:
        project.sql(each)
    ran = await project.run(*([verb] if verb != "cancel" else ["cancel", "--pending", "--yes"]))
    assert ran.code == 2
    assert "was changed, or another one was added" in ran.err
    assert named in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("ALTER TABLE rowcall.results OWNER TO stranger", "the table or view results"),
        ("ALTER SCHEMA rowcall OWNER TO stranger", "the schema"),
        (SPY, "the trigger spy"),
    ],
)
async def test_a_foreign_owner(tmp_path, postgres_server, statement, named):
    """A PostgreSQL store whose schema, table or trigger is not of a trusted owner is refused, with exit 2."""
    server = postgres_server
    with server.database() as name:
        server.execute("DO $$ BEGIN CREATE ROLE stranger; EXCEPTION WHEN duplicate_object THEN NULL; END $$", name)
        async with MockAPI(latency=0.001) as api:
            project = QuickProject(tmp_path, api)
            project.write(some_rows(5))
            assert (await project.run("run", "--set", f"store.path={server.url(name)}")).code == 0
            server.execute(statement, name)
            ran = await project.run("status", "--store", server.url(name))
        assert ran.code == 2
        assert named in ran.err
