"""What the help and the README say is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from rowcall.cli import VERBS, cli

ROOT = Path(__file__).parents[2]

PROMISED = {
    "init": ["--from", "--demo"],
    "preview": ["--set", "--env-file", "-n", "--curl", "--send", "-c", "--rate"],
    "check": ["--set", "--env-file", "--probe", "-v", "-c", "--rate"],
    "run": [
        "-c",
        "--concurrency",
        "--rate",
        "-n",
        "--limit",
        "--all",
        "--now",
        "--batch",
        "--if-changed",
        "--retry-failed",
        "-o",
        "--sample",
        "--set",
        "--env-file",
        "--events",
        "--rehearse",
    ],
    "report": ["-o", "--all", "--store", "--name"],
    "schema": [],
    "completion": [],
    "status": ["--watch", "--json", "--store", "--name"],
    "set": ["--keep", "--store", "--name"],
    "errors": ["--json", "--store", "--name"],
    "show": ["--curl", "--json", "--store", "--name", "--trust-store", "--env"],
    "retry": ["--where", "--batch", "--all-failed", "--done", "--dry-run", "--store", "--name"],
    "cancel": ["--where", "--batch", "--pending", "--dry-run", "--yes", "--store", "--name"],
    "rollback": ["--batch", "--dry-run", "--yes", "--store", "--name"],
    "batch": ["-o", "--base-url", "--ordered", "--store", "-c", "--rate", "--api-key-env", "--header", "-n", "--json"],
    "export": ["-o", "--format", "--only", "--if-changed"],
    "import": ["--config", "--json"],
    "verify": ["--json"],
    "backup": ["--keep", "--store"],
    "prune": ["--done-before", "--dry-run", "--yes", "--store", "--name"],
    "migrate": ["--from", "--to", "--json"],
    "mock": ["--port", "--latency", "--errors", "--rate-limit"],
}


def verb(name):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"no verb {name}"
    return command


def flags(command):
    return {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_explains_itself(name):
    """Each verb has a sentence of help, an example that names it, and a line for each of its flags."""
    command = verb(name)
    assert command.help
    assert command.epilog
    assert command.epilog.startswith("Example: rowcall ")
    assert f"rowcall {name}" in command.epilog
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", VERBS)
def test_no_help_shows_its_markup(name):
    """No backslash of a docstring reaches whoever reads the help."""
    assert "\\" not in verb(name).get_help(click.Context(verb(name)))


@pytest.mark.parametrize("name", PROMISED)
def test_promised_flags_exist(name):
    """Each verb has the flags that people were told of."""
    assert set(PROMISED[name]) <= flags(verb(name))


@pytest.mark.parametrize("name", VERBS)
def test_every_flag_can_be_set_by_its_variable(name):
    """``ROWCALL_`` and the long name of a flag is its variable, so no flag is stored under another name."""
    context = click.Context(verb(name), info_name=name, auto_envvar_prefix="ROWCALL")
    for option in (p for p in verb(name).params if isinstance(p, click.Option)):
        long = max(option.opts, key=len).removeprefix("--").replace("-", "_").upper()
        variable = option.envvar or f"{context.auto_envvar_prefix}_{option.name.upper()}"
        assert variable == f"ROWCALL_{long}"


def commands(text):
    """The ``rowcall ...`` commands of a text: in its code blocks, and in its examples."""
    for line in re.findall(r"^[ $]*(?:\S*/)?rowcall ([a-z].*)$", text, re.MULTILINE):
        for command in re.split(r"&&|;|\||, then ", re.split(r"\s#", line)[0]):  # a comment is none
            yield shlex.split(command.strip().removeprefix("rowcall "), posix=True)


@pytest.mark.parametrize("name", VERBS)
def test_examples_use_flags_that_exist(name):
    """The example of a verb is a command that its parser takes."""
    for part in re.split(r"&&|;|\||, then ", verb(name).epilog.removeprefix("Example: ")):
        words = part.strip().split()
        if words[:1] == ["rowcall"] and words[1] in VERBS:
            used = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
            assert used <= flags(verb(words[1])) | {"-h", "--help"}, part


def test_the_readme_uses_verbs_and_flags_that_exist():
    """Every command in the README's code blocks names a verb and flags that there are."""
    blocks = "\n".join(re.findall(r"^```.*?\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL))
    for words in commands(blocks):
        assert words[0] in VERBS, words
        used = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert used <= flags(verb(words[0])) | {"-h", "--help"}, words
