"""R22: the API key is nowhere but on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from aiohttp import web
from project import some_rows

from rowcall.mock import MockAPI

KEY = "sk-7f3-the-very-secret-value-9e1"
REFERENCES = {
    "env": 'api_key = { env = "API_KEY" }',
    "file": 'api_key = { file = "../key.txt" }',
    "command": 'api_key = { command = "cat ../key.txt" }',
}


@pytest.fixture
async def guarded(project, tmp_path):
    """A project with a key; the API wants another one."""
    project.folder, project.fresh = tmp_path / "project", True  # with a command line of its own
    (project.folder / "tmp").mkdir(parents=True)
    (tmp_path / "key.txt").write_text(KEY + "\n")
    project.env |= {"TMPDIR": str(project.folder / "tmp"), "HOME": str(project.folder)}
    project.env["API_KEY"] = KEY
    async with MockAPI(latency=0.005, api_key="another") as api:
        project.api = api
        project.write(some_rows(20))
        project.replace('timeout = "5s"', f'timeout = "5s"\n{REFERENCES["env"]}')
        yield project


def nowhere(project, *rans):
    """Not in what was said, nor in any file of the project or of its folder for temporary ones."""
    for ran in rans:
        assert KEY not in ran.out + ran.err
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    assert any(path.name == "t.db" for path in files)
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path


def command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


async def looked_at(project):
    verbs = ("status", "--json"), ("show", "k0"), ("export", "-o", "-")
    return await asyncio.gather(*(project.run(*verb) for verb in verbs))


@pytest.mark.parametrize(
    "reference", ["env", *(pytest.param(name, marks=pytest.mark.slow) for name in ("file", "command"))]
)
async def test_after_401(guarded, reference):
    """A key that is refused is not repeated, though the API repeats it."""
    guarded.replace(REFERENCES["env"], REFERENCES[reference])
    guarded.api.respond = echo
    ran = await guarded.run("run")
    assert ran.code == 3, ran.err
    assert guarded.api.calls[0].headers["Authorization"] == f"Bearer {KEY}"
    nowhere(guarded, ran, *(await looked_at(guarded) if reference == "env" else []))


def echo(call):
    key = call.headers["Authorization"].removeprefix("Bearer ")
    return web.json_response({"error": {"message": f"Incorrect API key provided: {key}", "code": "x"}}, status=401)


async def test_after_a_connect_error(guarded):
    """An API that is not there is named without the key."""
    await guarded.api.close_port()
    ran = await guarded.run("run")
    assert ran.code == 3, ran.err
    nowhere(guarded, ran, *await looked_at(guarded))


async def test_after_a_crash(guarded):
    """Neither a kill nor a bug of rowcall's own, whose traceback is kept in a file, shows it."""
    guarded.api.latency = 60
    process = await guarded.start("run")
    await asyncio.wait_for(guarded.api.wait_for_calls(1), 20)
    assert not any(KEY.encode() in line for line in command_lines())
    await guarded.kill(process)
    (guarded.folder / "sitecustomize.py").write_text(BUG)
    guarded.env["PYTHONPATH"] = os.pathsep.join([str(guarded.folder), os.environ.get("PYTHONPATH", "")])
    ran = await guarded.run("run")
    assert ran.code == 70, ran.err
    assert list((guarded.folder / "tmp").glob("rowcall-bug-*"))
    nowhere(guarded, ran)


BUG = """
import rowcall.providers.http as http

def build(self, data, call):
    raise ZeroDivisionError("made for a test")

http.HttpProvider.build = build
"""
