import copy
import hashlib
import json
import logging
import os
import pickle
import sys

import pytest
from pydantic import BaseModel

from rowcall.config import Secret, fingerprint, load
from rowcall.config.key_lines import dotted
from rowcall.config.references import Resolver
from rowcall.model import json_values
from rowcall.model.errors import ConfigError

HIDDEN = "sk-very-hidden"


def resolve(tree, *, folder, environ):
    resolver = Resolver(folder, environ, dotted)
    value = resolver.tree(tree, ())
    resolver.finish()
    return value


def refused(action):
    with pytest.raises(ConfigError) as caught:
        action()
    return caught.value


def python(code):
    return f"{sys.executable} -c '{code}'"


class Holder(BaseModel):
    secret: Secret


@pytest.mark.parametrize(
    "show",
    [
        str,
        repr,
        format,
        "{:>40}".format,
        "{!r:.30}".format,
        "%s".__mod__,
        "%r".__mod__,
        lambda secret: repr([secret, {"a": secret}]),
        lambda secret: json.dumps({"a": secret}, default=str),
        lambda secret: str(Holder(secret=secret)),
        lambda secret: str(Holder(secret=secret).model_dump()),
        lambda secret: Holder(secret=secret).model_dump_json(),
        lambda secret: logging.makeLogRecord({"msg": "%s", "args": (secret,)}).getMessage(),
    ],
)
def test_a_secret_shows_its_name_alone(show):
    """No way to make text of a secret shows its value."""
    shown = show(Secret("OPENAI_API_KEY", HIDDEN))
    assert HIDDEN not in shown
    assert "<secret OPENAI_API_KEY>" in shown


@pytest.mark.parametrize("write", [json.dumps, json_values.dumps, json_values.canonical, pickle.dumps])
def test_a_secret_cannot_be_written(write):
    """What would write a secret's value fails instead."""
    with pytest.raises(TypeError) as caught:
        write(Secret("KEY", HIDDEN))
    assert HIDDEN not in str(caught.value)


def test_secrets_are_equal_by_value():
    """Names do not count, other types are never equal, and a copy is equal."""
    secret = Secret("A", HIDDEN)
    assert secret == Secret("B", HIDDEN)
    assert hash(secret) == hash(Secret("B", HIDDEN))
    assert secret != Secret("A", "other")
    assert secret != HIDDEN
    assert copy.deepcopy(secret) == secret
    assert secret.reveal() == HIDDEN


def test_references_are_replaced_wherever_they_stand(tmp_path):
    """A file gives its text as it is, a variable and a command give secrets, everything else stays."""
    (tmp_path / "prompt.md").write_bytes("Grüße\r\n {{ row.a }}\n".encode())
    tree = {
        "text": {"file": "prompt.md"},
        "list": [1, {"env": "KEY"}, {"deep": {"command": python('print("from command")')}}],
        "no reference": [{"env": "KEY", "file": "x"}, {"env": 5}, {"file": ""}, {"path": "prompt.md"}],
    }
    got = resolve(tree, folder=tmp_path, environ={"KEY": " kept "})
    assert got["text"] == "Grüße\r\n {{ row.a }}\n"
    assert got["list"] == [1, Secret("", " kept "), {"deep": Secret("", "from command")}]
    assert repr(got["list"][1]) == "<secret KEY>"
    assert got["no reference"] == tree["no reference"]


def test_every_reference_that_leads_nowhere_is_named_at_once(tmp_path):
    """Each problem says where it is used, what is missing and what to do."""
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    tree = {
        "a": {"env": "UNSET"},
        "b": [{"env": "EMPTY"}],
        "c": {"file": "gone.md"},
        "d": {"file": "latin.txt"},
        "e": {"file": "."},
        "f": {"file": "nul\0"},
    }
    error = refused(lambda: resolve(tree, folder=tmp_path, environ={"EMPTY": ""}))
    assert [p.where for p in error.problems] == ["a", "b[0]", "c", "d", "e", "f"]
    said = [p.what for p in error.problems]
    assert said[0] == "a needs the variable UNSET, which is not set"
    assert said[1] == "b[0] needs the variable EMPTY, which is empty"
    assert "export UNSET=" in error.problems[0].remedy
    assert ".env" in error.problems[0].remedy
    assert said[2] == "c needs the file gone.md, which does not exist"
    assert str(tmp_path / "gone.md") in error.problems[2].remedy
    assert said[3].endswith("which is not UTF-8")
    assert "number 4" in error.problems[3].remedy
    assert "cannot be read" in said[4]
    assert "cannot be read" in said[5]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            python('import sys; print("tok-123"); print("no", file=sys.stderr); sys.exit("bad tok-123")'),
            "exit code 1: bad ***",
        ),
        (python("import sys; sys.exit(3)"), "exit code 3"),
        (python("pass"), "printed nothing"),
        ("no-such-command-here", "cannot be started: No such file"),
        ("'unclosed", "cannot be started: No closing quotation"),
    ],
)
def test_a_command_that_fails_says_how(tmp_path, command, said):
    """The exit code and the last line on stderr are shown, nothing of what it printed to stdout."""
    error = refused(lambda: resolve({"k": {"command": command}}, folder=tmp_path, environ={}))
    assert said in str(error).replace(command, "")
    assert "tok-123" not in str(error).replace(command, "")


@pytest.fixture
def records_on_stdin():
    """Standard input of this process, and of what it starts, holds a record."""
    reading, writing = os.pipe()
    os.write(writing, b"a record")
    os.close(writing)
    saved = os.dup(0)
    os.dup2(reading, 0)
    yield
    os.dup2(saved, 0)
    os.close(saved)
    os.close(reading)


def test_a_command_knows_the_folder_and_the_variables(tmp_path, records_on_stdin):
    """It runs in the folder of the config with the variables it was given, and takes no records from stdin."""
    code = 'import os, sys; print(os.getcwd(), os.environ["A"], repr(sys.stdin.read()))'
    got = resolve({"command": python(code)}, folder=tmp_path, environ={"A": "b"})
    assert got.reveal() == f"{tmp_path} b ''"


def test_a_fingerprint_follows_files_and_names_secrets(tmp_path):
    """A changed file changes it; a changed secret, or one that is not set, does not."""
    prompt = tmp_path / "prompt.md"
    prompt.write_text("one")
    tree = {"a": [{"file": "prompt.md"}, {"env": "UNSET"}, {"command": "false"}], "b": 1}
    digest = hashlib.sha256(b"one").hexdigest()
    first = fingerprint(tree, folder=tmp_path)
    assert first == {"a": [{"file": digest}, {"env": "UNSET"}, {"command": "false"}], "b": 1}
    prompt.write_text("two")
    assert fingerprint(tree, folder=tmp_path) != first
    prompt.unlink()
    assert "which does not exist" in str(refused(lambda: fingerprint(tree, folder=tmp_path)))


CONFIG = """\
[input]
path = "-"
[api]
preset = "openai"
api_key = { env = "KEY" }
headers = { X-Api-Key = { file = "key.txt" }, env = "prod" }
[request]
params = { env = "prod" }
[request.headers]
Authorization = { file = "key.txt" }
[request.body]
messages = [
  { content = { file = "prompt.md" } },
  { content = { env = "KEY" } },
]
[response]
schema = { file = "schema.json" }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG)
    (tmp_path / "key.txt").write_text(f"{HIDDEN}\n")
    (tmp_path / "prompt.md").write_text("Label it.")
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    return tmp_path


def test_a_config_is_resolved_as_a_whole(folder):
    """Keys and secret headers become secrets without white space; tables of names are no references."""
    config = load(folder / "config.toml").resolve({"KEY": f" {HIDDEN}\n"})
    assert config.api.api_key == Secret("", HIDDEN)
    assert config.api.headers == {"X-Api-Key": Secret("", HIDDEN), "env": "prod"}
    assert config.request.params == {"env": "prod"}
    assert config.request.headers == {"Authorization": Secret("", HIDDEN)}
    assert config.request.body["messages"][0] == {"content": "Label it."}
    assert config.response.json_schema == {"type": "object"}


def test_a_resolved_config_never_shows_a_secret(folder):
    """Neither its text, nor its settings, nor a dump of it holds a secret's value."""
    config = load(folder / "config.toml").resolve({"KEY": HIDDEN})
    shown = [str(config), repr(config), f"{config}", str(config.model_dump()), json.dumps(config.settings())]
    assert not [text for text in shown if HIDDEN in text]
    assert "<secret KEY>" in shown[-1]


def test_variables_come_from_the_process_and_then_from_dotenv(folder, monkeypatch):
    """Without variables of its own, a config asks the process and then .env beside the config file."""
    (folder / ".env").write_text("KEY=from-file\n")
    config = load(folder / "config.toml")
    monkeypatch.delenv("KEY", raising=False)
    assert config.resolve().api.api_key.reveal() == "from-file"
    monkeypatch.setenv("KEY", "from-process")
    assert config.resolve().api.api_key.reveal() == "from-process"


def test_unresolved_references_of_a_config_have_their_lines(folder):
    """Everything that is missing is told at once, each with file and line."""
    for name in ("key.txt", "prompt.md"):
        (folder / name).unlink()
    (folder / "schema.json").write_text("{")
    config = load(folder / "config.toml")
    error = refused(lambda: config.resolve({}))
    lines = [problem.where.removeprefix(f"{folder}/config.toml:") for problem in error.problems]
    assert sorted(lines, key=int) == ["5", "6", "10", "13", "14", "17"]
    assert "the file of response.schema is not valid JSON" in str(error)


def test_a_key_that_no_header_can_carry_is_refused(folder):
    """A key with a typographic quote or a line break in it is refused before any call, and not shown."""
    for key in (f"“{HIDDEN}”", f"{HIDDEN}\nX: y"):
        error = refused(lambda key=key: load(folder / "config.toml").resolve({"KEY": key}))
        assert "<secret KEY> is empty or contains characters" in str(error)
        assert HIDDEN not in str(error)


def test_the_fingerprint_of_a_config_is_what_it_sends(folder):
    """It holds the request as written, preset and base URL, and changes with a prompt but not with a key's file."""
    config = load(folder / "config.toml", overrides={"pace.concurrency": 3, "request.body.model": "m"})
    first = config.fingerprint()
    assert first["preset"] == "openai"
    assert first["base_url"] is None
    assert set(first["request"]) == {"params", "headers", "body"}
    assert first["request"]["headers"] == {"Authorization": {"file": "key.txt"}}
    assert first["request"]["body"]["model"] == "m"
    (folder / "key.txt").write_text("another key")
    assert load(folder / "config.toml", overrides={"request.body.model": "m"}).fingerprint() == first
    (folder / "prompt.md").write_text("Label them.")
    assert config.fingerprint() != first
