"""``work --store`` and ``show --store`` do with this machine only what it allows, whatever the store says."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from project import some_rows
from quickproject import QuickProject

from rowcall.cli.shared.recipe_trust import Trust, approvals
from rowcall.mock import MockAPI
from rowcall.model.errors import ConfigError, RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.run.recipe import Recipe

KEY = "sk-the-secret-of-this-machine"
HERE = StoreLocation(Path("t.db"))


@pytest.fixture
async def project(tmp_path):
    """A store with ten records, and a worker's folder in which nothing else is."""
    async with MockAPI(latency=0.001) as api:
        project = QuickProject(tmp_path, api)
        project.env = {"XDG_STATE_HOME": str(tmp_path / "state"), "API_KEY": KEY}
        project.write(some_rows(10))
        yield project


async def tampered(project, more):
    """Enqueue, then write something below [api] of the recipe in the store, as anybody who can write to it could."""
    assert (await project.run("enqueue")).code == 0
    [(text,)] = project.sql("SELECT recipe FROM recipes")
    recipe = json.loads(text)
    recipe["files"]["config.toml"] = recipe["files"]["config.toml"].replace('["api"]\n', f'["api"]\n{more}\n', 1)
    assert more in recipe["files"]["config.toml"]
    project.sql("UPDATE recipes SET recipe = ?", json.dumps(recipe))


async def work(project, *flags):
    return await project.process("work", "--store", "t.db", "--no-progress", *flags)


@pytest.mark.parametrize(
    ("more", "wanted", "remedy"),
    [
        ('api_key = { env = "API_KEY" }', "api.api_key sends the variable API_KEY, to http://", "--env API_KEY"),
        ('api_key = { command = "touch pwned" }', "api.api_key runs the command touch pwned", "--trust-store"),
        ('api_key = { file = "/etc/passwd" }', "api.api_key reads the file /etc/passwd", "--trust-store"),
        ('headers = { a = { file = "../../x" } }', "api.headers.a reads the file ../../x", "--trust-store"),
        ('headers = { a = { file = "~/x" } }', "api.headers.a reads the file ~/x", "--trust-store"),
        ('client_cert = "/etc/cert.pem"', "api.client_cert reads the file /etc/cert.pem", "--trust-store"),
    ],
)
async def test_what_a_recipe_wants_is_refused_and_shown(project, more, wanted, remedy):
    """A worker that allowed nothing makes no call and runs nothing: exit 2, with what is wanted and what to write."""
    await tampered(project, more)
    ran = await work(project)
    assert ran.code == 2
    assert wanted in ran.err
    assert remedy in ran.err
    assert not (project.folder / "pwned").exists()
    assert not project.api.calls
    assert KEY not in ran.err + ran.out


async def test_variables_that_the_worker_names(project):
    """With --env, or ROWCALL_ENV, the named variables are sent, and no others."""
    await tampered(project, 'api_key = { env = "API_KEY" }\nheaders = { X-Api-Key = { env = "OTHER" } }')
    project.env["OTHER"] = "other"
    ran = await work(project, "--env", "API_KEY")
    assert ran.code == 2
    assert "sends the variable OTHER" in ran.err
    assert "sends the variable API_KEY" not in ran.err
    project.env["ROWCALL_ENV"] = "API_KEY OTHER"
    ran = await work(project)
    assert ran.code == 0, ran.err
    assert {call.headers["Authorization"] for call in project.api.calls} == {f"Bearer {KEY}"}


async def test_trusting_the_store(project):
    """With --trust-store a command of the recipe is run, and its output is the key."""
    await tampered(project, 'api_key = { command = "echo from-command" }')
    ran = await work(project, "--trust-store")
    assert ran.code == 0, ran.err
    assert {call.headers["Authorization"] for call in project.api.calls} == {"Bearer from-command"}


async def test_resuming_takes_the_same_flags(project):
    """The command that resumes names what was allowed this time."""
    await tampered(project, 'api_key = { env = "API_KEY" }')
    ran = await work(project, "--env", "API_KEY", "-n", "3")
    assert "rowcall work --store t.db --name t --env API_KEY" in ran.err


async def test_a_recipe_that_wants_nothing_needs_no_flag(project):
    """A config without keys, commands and foreign files is worked on as before."""
    assert (await project.run("enqueue")).code == 0
    assert (await work(project)).code == 0
    assert project.statuses() == {"done": 10}


async def test_show_prints_no_command_of_a_stranger(project):
    """``show --store --curl`` prints neither a command nor a variable that was not allowed; without --curl names do."""
    await tampered(project, 'api_key = { env = "API_KEY" }')
    ran = await project.run("show", "k3", "--store", "t.db", "--curl")
    assert (ran.code, ran.out) == (2, "")
    assert "--env API_KEY" in ran.err
    assert "$API_KEY" in (await project.run("show", "k3", "--store", "t.db", "--curl", "--env", "API_KEY")).out
    assert "$API_KEY" in (await project.run("show", "k3", "--store", "t.db")).out


def recipe(text):
    return Recipe({}, {"config.toml": text})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[handler]\npath = "tasks.py:label"', "handler.path runs the code of tasks.py:label"),
        ('[request.body]\nx = [{ attach = "/etc/passwd" }]', r"request.body.x\[0\] attaches the file /etc/passwd"),
        ('[response]\nschema = { file = "/etc/x" }', "response.schema reads the file /etc/x"),
        ('[store]\npath = { command = "x" }', "store.path runs the command x"),
        ('[api]\nheaders = { x = { env = "A\\u001b[31m\\u202eB" } }', "sends the variable A.*B"),
    ],
)
def test_every_place_is_looked_at(text, wanted):
    """Code, attachments, schemas and tables that a recipe never has are found too; no escape reaches the terminal."""
    with pytest.raises(ConfigError, match=wanted) as refused:
        Trust().check(recipe(text), HERE)
    assert str(refused.value).replace("\n", "").isprintable()
    Trust(everything=True).check(recipe(text), HERE)


@pytest.mark.parametrize("text", ["no toml =", "a = " + "[" * 5000])
def test_a_damaged_recipe(text):
    """A recipe that is no TOML is refused in words."""
    with pytest.raises(RowcallError, match="not valid TOML"):
        Trust().check(recipe(text), HERE)


def test_an_approval_is_kept_for_this_recipe_alone(monkeypatch, tmp_path):
    """A person at a terminal is asked once; the hash is kept, mode 0600; another recipe is asked for again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    answers, asked = [True, False], []
    monkeypatch.setattr("click.confirm", lambda question, **_: asked.append(question) or answers.pop(0))
    first, second = (recipe(f'[api]\napi_key = {{ command = "{name}" }}') for name in "ab")
    for _ in range(2):
        Trust(asks=True).check(first, HERE)
    assert len(asked) == 1
    Trust().check(first, HERE)
    with pytest.raises(ConfigError):
        Trust(asks=True).check(second, HERE)
    assert len(asked) == 2
    assert stat.S_IMODE(approvals().stat().st_mode) == 0o600
    approvals().chmod(0o622)
    with pytest.raises(ConfigError):
        Trust().check(first, HERE)
    approvals().chmod(0o600)
    kept = approvals().rename(tmp_path / "kept")
    approvals().symlink_to(kept)
    with pytest.raises(ConfigError):
        Trust().check(first, HERE)
    approvals().unlink()
    os.mkfifo(approvals())
    with pytest.raises(ConfigError):
        Trust().check(first, HERE)
