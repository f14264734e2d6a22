"""What ``--curl`` prints is safe to run: in every shell it is one call of curl with exactly the request's words."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from plainjob import plain_config
from quickproject import QuickProject

from rowcall.cli.setup.request_preview import RequestPreview
from rowcall.cli.setup.shell_words import shell_word
from rowcall.config import compose, load
from rowcall.mock import MockAPI
from rowcall.model.errors import ConfigError

NAUGHTY = json.loads((Path(__file__).parents[1] / "data" / "strings" / "blns.json").read_text("utf-8"))
EXTRA = [
    "\u00a0'; touch pwned; '",
    "\u00a0`touch pwned`$(touch pwned)",
    "it's\u00a0a\u200b\u202e\x1b[31m\r\x9b",
    "\u00a0\\'; touch pwned; #",
    "!!touch pwned",
    "-o pwned",
    "'\n\n'",
    "tail\n\n",
    "{a,b}[1-3]%41\\",
    "''\u00a0''",
]
TEXTS = [text for text in [*NAUGHTY, *EXTRA] if "\0" not in text]
SHELLS = [
    pytest.param([*shell], id=shell[0], marks=pytest.mark.skipif(not shutil.which(shell[0]), reason="no such shell"))
    for shell in (("sh",), ("dash",), ("bash", "--norc"), ("bash", "--posix", "--norc"), ("zsh", "-f"))
]
STUB = """#!/bin/sh
for word; do printf '%s\\0' "$word"; done >> "$CALLS"
printf '\\n' >> "$CALLS"
case " $* " in *" @- "*) cat > "$CALLS.stdin";; esac
"""


@pytest.fixture
def calls_of(tmp_path):
    """Runs a script in a shell, in a folder of its own, with a curl that keeps its words; gives those of each call."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "curl").write_text(STUB)
    (programs / "curl").chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()

    def calls_of(shell, script, **env):
        kept = tmp_path / "calls"
        kept.unlink(missing_ok=True)
        variables = {"PATH": f"{programs}:/usr/bin:/bin", "CALLS": str(kept), "LC_ALL": "C.UTF-8", **env}
        ran = subprocess.run(shell, input=script.encode(), cwd=folder, env=variables, capture_output=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert list(folder.iterdir()) == []
        return [line.split(b"\0")[:-1] for line in kept.read_bytes().split(b"\0\n")[:-1] for line in [line + b"\0"]]

    return calls_of


@pytest.mark.parametrize("shell", SHELLS)
def test_a_word_is_that_text_in_every_shell(calls_of, shell):
    """Each of the naughty strings is one argument, byte for byte, whatever the shell, and runs nothing."""
    script = "".join(f"curl x{shell_word(text)}\n" for text in TEXTS)
    assert calls_of(shell, script) == [[f"x{text}".encode()] for text in TEXTS]


def test_a_word_steers_no_terminal():
    """All that is printed is printable, but for the line breaks that stand in the text itself."""
    for text in TEXTS:
        assert shell_word(text).replace("\n", "").isprintable()


def _preview(tmp_path, body, **request):
    settings = {
        "input": {"path": "-"},
        "api": {"preset": "http", "base_url": "https://h.example/v1"},
        "request": {"body": body, **request},
    }
    return RequestPreview(compose(settings, name=str(tmp_path / "config.toml"), further={}))


@pytest.mark.parametrize("shell", SHELLS)
def test_requests_of_naughty_rows(calls_of, tmp_path, shell):
    """A naughty cell in the path, the query, a header and the body gives the words that the request is made of."""
    preview = _preview(
        tmp_path, {"x": "{{ row.x }}"}, path="/{{ row.n }}", params={"q": "{{ row.x }}"}, headers={"x-n": "{{ row.n }}"}
    )
    shown = [preview.show(str(n), {"x": text, "n": f"n{n}'$(touch pwned)"}) for n, text in enumerate(TEXTS)]
    calls = calls_of(shell, "\n".join(request.curl for request in shown) + "\n")
    assert len(calls) == len(TEXTS)
    for words, text, request in zip(calls, TEXTS, shown, strict=True):
        assert words[:2] == [b"-X", b"POST"]
        assert request.url.encode() in words
        assert json.loads(words[words.index(b"--data-raw") + 1]) == {"x": text}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("body", ["@/etc/passwd", "@-", "-d", "<x", "=a", "a\n"])
def test_a_body_that_curl_would_take_for_a_file(calls_of, tmp_path, shell, body):
    """A body of text that begins with @ is sent as it stands, and no file is read for it."""
    [words] = calls_of(shell, _preview(tmp_path, "{{ row.x }}").show("k", {"x": body}).curl)
    assert words[-2:] == [b"--data-raw", body.encode()]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("body", ["a\0b\0", "\0'\u00a0", "x" * 300_000 + "'"])
def test_a_body_that_is_no_argument(calls_of, tmp_path, shell, body):
    """A body with a NUL, or longer than an argument may be, reaches curl on its standard input."""
    [words] = calls_of(shell, _preview(tmp_path, "{{ row.x }}").show("k", {"x": body}).curl)
    assert words[-2:] == [b"--data-binary", b"@-"]
    assert (tmp_path / "calls.stdin").read_bytes() == body.encode()


def test_signs_of_a_pattern_in_a_url(tmp_path):
    """Brackets and braces of a row's value are no pattern for curl, which would call once for each of its matches."""
    preview = _preview(tmp_path, "b", path="/a?q={1,2}[1-9]")
    assert "--globoff" in preview.show("k", {}).curl
    assert "--globoff" not in _preview(tmp_path, "b", path="/a").show("k", {}).curl


@pytest.mark.parametrize("shell", SHELLS)
async def test_both_verbs_as_their_help_says(calls_of, tmp_path, shell):
    """``show --curl | sh`` and ``preview --curl | sh`` run nothing out of a cell; secrets go by variables."""
    rows = [[f"k$(touch pwned)\u00a0'{n}", text] for n, text in enumerate(EXTRA)]
    async with MockAPI() as api:
        project = QuickProject(tmp_path, api, env={"API_KEY": "sk-1"})
        text = plain_config(api.url).replace("[request.body]", 'api_key = { env = "API_KEY" }\n[request.body]')
        project.config(text)
        with (tmp_path / "in.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["id", "text"], *rows])
        previewed = (await project.run("preview", "-n", "99", "--curl")).out
        assert (await project.run("enqueue")).code == 0
        shown = [(await project.run("show", "--curl", "--", key)).out for key, _ in rows]
    for script in (previewed, "".join(shown)):
        calls = calls_of(shell, script, API_KEY="sk-1")
        bodies = [json.loads(words[words.index(b"--data-raw") + 1]) for words in calls]
        assert [body["messages"][0]["content"] for body in bodies] == [text for _, text in rows]
        assert all(b"authorization: Bearer sk-1" in words for words in calls)


@pytest.mark.parametrize("name", ["A;touch pwned", "A-B", "1A", "A B", "$(touch pwned)", "Ä", "A}x"])
def test_names_of_variables_are_checked(tmp_path, name):
    """A variable whose name a shell would not take for one is refused when the config is read."""
    config = tmp_path / "config.toml"
    config.write_text(
        plain_config("https://h").replace('preset = "openai"', f'preset = "openai"\napi_key = {{ env = "{name}" }}')
    )
    with pytest.raises(ConfigError, match="names a variable with other signs than letters, digits and _"):
        load(config)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_for_a_secret_is_run_as_rowcall_runs_it(calls_of, tmp_path, shell):
    """Rowcall starts a command without a shell, so no sign in its words is one for the shell that runs the line."""
    preview = _preview(tmp_path, "b", headers={"X-Api-Key": {"command": "printf %s '$HOME;`id`' "}})
    [words] = calls_of(shell, preview.show("k", {}).curl)
    assert b"x-api-key: $HOME;`id`" in words
