"""``rowcall init``: from nothing to a config that passes ``check`` once two lines are edited."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rowcall.cli.setup.init import _STARTERS
from rowcall.config import load

CSV = "id,body\n1,it is good\n2,it is bad\n"
BATCH = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": []}}
EDITS = {
    "llm": {"reviews.csv": "mine.csv", "row.text": "row.body"},
    "rest": {"places.csv": "mine.csv", "row.name": "row.body"},
    "embeddings": {"texts.csv": "mine.csv", "row.text": "row.body"},
    "openai-batch": {"requests.jsonl": "mine.jsonl", "https://api.openai.com/v1": "http://127.0.0.1:9/v1"},
}


@pytest.fixture
def started(project):
    """A folder with an input, and the config of a starter with its marked lines edited."""

    async def started(start):
        (project.folder / "mine.csv").write_text(CSV)
        (project.folder / "mine.jsonl").write_text(json.dumps(BATCH) + "\n")
        ran = await project.run("init", "--from", start)
        assert ran.code == 0, ran.err
        path = project.folder / "config.toml"
        lines = path.read_text().splitlines()
        for number, (old, new) in enumerate(EDITS[start].items()):
            [marked] = [line for line in lines if "# EDIT" in line and old in line]
            lines[lines.index(marked)] = marked.replace(old, new)
            assert f"config.toml:{lines.index(marked.replace(old, new)) + 1}   " in ran.err, number
        path.write_text("\n".join(lines) + "\n")
        return project

    return started


@pytest.mark.parametrize("start", EDITS)
async def test_two_lines_are_edited_and_check_is_content(started, start):
    """Each starter marks two lines; with them edited and its variables set, ``check`` and ``preview`` find no fault."""
    project = await started(start)
    example = (project.folder / ".env.example").read_text()
    (project.folder / ".env").write_text(re.sub(r"=$", "=x", example, flags=re.MULTILINE))
    assert re.findall(r"^(\w+)=$", example, re.MULTILINE)
    for verb in ("check", "preview"):
        ran = await project.run(verb)
        assert ran.code == 0, ran.out + ran.err
        assert "request" not in ran.err


async def test_llm_from_nothing_to_a_result(started):
    """init, two edits, run: the file that the starter names is there, with the label beside the columns."""
    project = await started("llm")
    project.replace('preset = "openai"   ', 'preset = "mock"   ')
    project.env["OPENAI_API_KEY"] = "x"
    ran = await project.run("run")
    assert ran.code == 0, ran.err
    assert [row["label"] for row in project.exported("labels.csv")] == ["positive", "negative"]


@pytest.mark.parametrize("start", EDITS)
def test_what_a_starter_comments_out_is_valid(start, tmp_path):
    """Lines that stand commented out can be switched on as they are, but for the other way to send a key."""
    text = (_STARTERS / f"{start}.toml").read_text()
    on = re.sub(r"^# (?=[a-z_]+ = )", "", text, flags=re.MULTILINE)
    (tmp_path / "config.toml").write_text(on)
    assert load(tmp_path / "config.toml").input.path
    assert max(map(len, text.splitlines())) <= 120


async def test_nothing_is_overwritten(project):
    """A config that is there is refused and left as it was; a .gitignore that is there is left alone."""
    (project.folder / ".gitignore").write_text("mine\n")
    ran = await project.run("init")
    assert ran.code == 0
    assert ".gitignore" not in ran.err
    (project.folder / "config.toml").write_text("mine")
    ran = await project.run("init", "--from", "rest")
    assert ran.code == 2
    assert "already contains config.toml, .env.example" in ran.err
    assert (project.folder / "config.toml").read_text() == "mine"
    assert (project.folder / ".gitignore").read_text() == "mine\n"


async def test_the_ignored_files_are_those_that_hold_secrets_or_are_written(project):
    """.env and the store stay out of git; .env.example does not."""
    await project.run("init", "new")
    ignored = (project.folder / "new" / ".gitignore").read_text().splitlines()
    assert {".env", "*.db", "*.db-*"} <= set(ignored)
    assert not any(Path(".env.example").match(pattern) for pattern in ignored if pattern[:1] not in ("#", ""))


async def test_another_folder(project):
    """DIR is made, and the next steps name it as a shell reads it."""
    ran = await project.run("init", "my job", "--from", "embeddings")
    assert ran.code == 0
    assert "cd 'my job'" in ran.err
    assert (project.folder / "my job" / "config.toml").exists()


async def test_demo(project):
    """``--demo`` and ``--from demo`` write the same, which runs as it is."""
    assert (await project.run("init", "a", "--demo")).code == 0
    assert (await project.run("init", "b", "--from", "demo")).code == 0
    names = {path.name for path in (project.folder / "a").iterdir()}
    assert names == {path.name for path in (project.folder / "b").iterdir()}
    assert (await project.run("check", "a/config.toml")).code == 0
