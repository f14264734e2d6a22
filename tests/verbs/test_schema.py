"""``rowcall schema`` and ``rowcall completion``; and that README, help, example and schema say the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import fastjsonschema
import pytest

from rowcall.cli import VERBS
from rowcall.cli.setup.init import _STARTERS
from rowcall.cli.shared.flags import SETTING_FLAGS
from rowcall.cli.tools.config_schema import _OFF, config_schema
from rowcall.config import Config

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "config.example.toml").read_text()
CONFIGS = [*(ROOT / "examples").glob("*/config.toml"), *_STARTERS.glob("*.toml"), ROOT / "config.example.toml"]
VALID = fastjsonschema.compile(config_schema())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_config_of_the_project_follows_the_schema(path):
    """What rowcall itself writes and shows is what an editor accepts."""
    VALID(tomllib.loads(path.read_text()))


def test_the_example_with_all_keys_on_follows_the_schema():
    """So does every key that stands commented out."""
    VALID(tomllib.loads(_OFF.sub("", EXAMPLE)))


def test_the_readme_shows_valid_configs():
    """The TOML in the README is a config, or some tables of one."""
    blocks = re.findall(r"^```toml\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        VALID({"input": {"path": "a.csv"}, "api": {"preset": "mock"}} | tomllib.loads(block))


@pytest.mark.parametrize(
    "wrong",
    [
        "[pace]\nconcurency = 3\n",
        '[pace]\nconcurrency = "3"\n',
        "[stop]\ngrace = true\n",
        "unknown = 1\n",
        '[output]\nformat = "docx"\n',
    ],
)
def test_what_is_wrong_does_not(wrong):
    """An unknown key and a value of another kind are marked."""
    start = '[input]\npath = "a.csv"\n[api]\npreset = "mock"\n'
    VALID(tomllib.loads(start))
    with pytest.raises(fastjsonschema.JsonSchemaException):
        VALID(tomllib.loads(wrong + start))


def leaves(schema, node, path=()):
    """Every key of the schema that is no table of its own, with its part."""
    for name, inner in node.get("properties", {}).items():
        table = next((o for o in (inner, *inner.get("anyOf", ())) if "$ref" in o), None)
        if table:
            yield from leaves(schema, schema["$defs"][table["$ref"].rpartition("/")[2]], (*path, name))
        else:
            yield (*path, name), inner


def test_every_key_is_explained():
    """An editor shows a sentence for each key: that of the example."""
    keys = dict(leaves(config_schema(), config_schema()))
    assert len(keys) > 40
    silent = {path for path, node in keys.items() if not node.get("description")}
    assert silent <= UNSAID
    assert keys["pace", "concurrency"]["description"].startswith("at most so many calls in flight")


UNSAID = {("input", "path"), ("api", "headers"), ("request", "params"), ("request", "headers"), ("request", "body")}
"""Keys whose example stands without a sentence behind it."""


def test_flags_that_go_before_settings_name_settings():
    """Each setting that a flag goes before is a key of the config."""
    keys = {".".join(path) for path, _ in leaves(config_schema(), config_schema())}
    assert set(SETTING_FLAGS) <= keys


async def test_the_verb(project):
    """It prints each of the three schemas as JSON, the config's where nothing is said."""
    for args, title in (
        ((), "A config of rowcall"),
        (("config",), "A config of rowcall"),
        (("summary",), "Summary"),
        (("events",), "A line of rowcall run --events"),
    ):
        ran = await project.run("schema", *args)
        assert ran.code == 0
        assert json.loads(ran.out)["title"] == title
    assert (await project.run("schema", "other")).code == 2


async def test_the_summary_follows_its_schema(finished):
    """``status --json`` is what ``schema summary`` says."""
    schema = json.loads((await finished.run("schema", "summary")).out)
    fastjsonschema.compile(schema)(json.loads((await finished.run("status", "--json")).out))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_completion(project, shell):
    """A shell gets a script that asks rowcall itself."""
    ran = await project.run("completion", shell)
    assert ran.code == 0
    assert "_ROWCALL_COMPLETE" in ran.out


def test_completion_works():
    """Asked as a shell asks, rowcall names the verbs and the flags of a verb."""
    for words, place, wanted in (("rowcall re", 1, "retry"), ("rowcall run --sa", 2, "--sample")):
        env = {"_ROWCALL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place), "PATH": "/bin"}
        command = [str(Path(sys.executable).parent / "rowcall")]
        ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert f"plain,{wanted}" in ran.stdout.split()


def test_help_imports_nothing_heavy():
    """``rowcall --help`` and the table of verbs need none of the libraries that the verbs need."""
    script = (
        "import sys\nfrom rowcall.cli import cli\ncli(['--help'], standalone_mode=False)\n"
        "print(sorted({'pydantic', 'httpx', 'aiohttp', 'jinja2', 'rich', 'sqlite3', 'asyncio'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
    for verb in VERBS:
        assert f"\n  {verb} " in ran.stdout


def test_the_schema_is_that_of_the_code():
    """Each table and key of the models is in the schema, under the name that a file uses."""
    schema = config_schema()
    assert set(schema["properties"]) == {field.alias or name for name, field in Config.model_fields.items()}
    assert schema["required"] == ["input", "api"]
