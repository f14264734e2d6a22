"""``rowcall show``: one record with its request, its tries, its answer."""

from __future__ import annotations

import json
import subprocess

from project import some_rows

from rowcall.config import load
from rowcall.run.pipeline import Pipeline


async def test_show_of_a_done_record(finished):
    """Payload, request as it would be sent now, and answer."""
    ran = await finished.run("show", "k3")
    assert ran.code == 0
    assert "k3: done, 1 attempt, batch" in ran.out
    assert "text: sentence number 3 is good" in ran.out
    assert f"request now: POST {finished.api.url}/chat/completions" in ran.out
    assert '"content":"Judge the sentence.\\n"' in ran.out
    assert '"label":"positive"' in ran.out


async def test_show_of_a_failed_record(project):
    """Every try with its reason, whether it was charged, and what to do."""
    project.api.poison = {"sentence number 3 is good"}
    project.write(some_rows(10))
    await project.run("run")
    ran = await project.run("show", "k3")
    assert ran.out.count("\n  try ") == 3
    assert ran.out.count("(charged)") == 3
    assert "failed: http_500" in ran.out


async def test_show_has_the_traceback_of_a_handler(project):
    """Below the last try stands the end of what the handler's error came with, a line each, steering no terminal."""
    project.write(some_rows(1))
    text = (project.folder / "config.toml").read_text()
    a, b = text.index("[request.body]"), text.index("[output]")
    project.config(text[:a] + '[handler]\npath = "tasks.py:label"\n' + text[b:])
    (project.folder / "tasks.py").write_text(
        "async def label(row, call):\n    raise KeyError('\\x1b[31m' + row['id'])\n"
    )
    await Pipeline(load(project.folder / "config.toml")).run()
    out = (await project.run("show", "k0")).out
    assert 'tasks.py", line 2, in label\n' in out
    assert "\n    KeyError: " in out
    assert "\x1b" not in out


async def test_show_of_a_pending_record_with_a_failure(project):
    """One that waits for another try is not called failed, and needs no retry."""
    project.api.poison = {"sentence number 0 is good"}
    project.write(some_rows(5))
    await Pipeline(load(project.folder / "config.toml")).run()
    project.sql("UPDATE jobs SET status = 'pending' WHERE id = 'k0'")
    project.sql("UPDATE jobs SET reason = 'http_500', error = 'HTTP 500: no' WHERE id = 'k0'")
    out = (await project.run("show", "k0")).out
    assert "its last failure: http_500: HTTP 500: no" in out
    assert "\n  failed" not in out
    assert "rowcall retry" not in out


async def test_show_json(finished):
    """One object with the promised keys; the request is among them."""
    shown = json.loads((await finished.run("show", "k3", "--json")).out)
    promised = {"key", "kind", "batch", "status", "attempts", "payload", "result", "error", "reason", "tries"}
    assert promised <= set(shown)
    assert shown["payload"] == {"id": "k3", "text": "sentence number 3 is good", "note": "n"}
    assert shown["request"]["method"] == "POST"
    assert json.loads(shown["request"]["body"])["messages"][1]["content"] == "sentence number 3 is good"


async def test_show_follows_the_config_of_now(finished):
    """The request shown is that of the prompt as it is now."""
    (finished.folder / "prompt.md").write_text("Another question.\n")
    assert "Another question." in (await finished.run("show", "k3")).out


async def test_curl_runs_and_shows_no_secret(project):
    """``--curl`` is a command that a shell runs: words with quotes arrive whole, the key comes from its variable."""
    project.env["API_KEY"] = "secret value"
    rows = some_rows(2)
    rows[1][1] = 'it\'s "$HOME" `id` \\ \n\x1b[31m good'
    project.write(rows)
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "API_KEY" }')
    project.replace("[response]", "[request.headers]\nX-Note = \"{{ row.note }} 'it'\"\n[response]")
    assert (await project.run("run")).code == 0
    del project.env["API_KEY"]
    ran = await project.run("show", "k1", "--curl")
    assert ran.code == 0, ran.err
    assert "secret value" not in ran.out
    assert "\x1b" not in ran.out
    words = _words_of(ran.out, project.folder, API_KEY="secret value")
    assert words[:3] == ["-X", "POST", f"{project.api.url}/chat/completions"]
    assert "authorization: Bearer secret value" in words
    assert "x-note: n 'it'" in words
    body = json.loads(words[words.index("--data-raw") + 1])
    assert body["messages"][1]["content"] == rows[1][1]


async def test_curl_reads_files_and_commands_for_secrets(project):
    """Secrets from a file and from a command come out as the shell's way to get them."""
    project.write(some_rows(1))
    (project.folder / "a key.txt").write_text("from-file\n")
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { file = "a key.txt" }')
    project.replace("[response]", '[request.headers]\nX-Api-Key = { command = "echo from-command" }\n[response]')
    assert (await project.run("run")).code == 0
    ran = await project.run("show", "k0", "--curl")
    assert "from-file" not in ran.out
    words = _words_of(ran.out, project.folder)
    assert "authorization: Bearer from-file" in words
    assert "x-api-key: from-command" in words


def _words_of(command, folder, **env):
    """The words that a program in curl's place gets from a shell."""
    script = f'curl() {{ printf "%s\\0" "$@"; }}\n{command}'
    ran = subprocess.run(["bash", "-c", script], cwd=folder, env={"PATH": "/usr/bin:/bin", **env}, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.decode().split("\0")[:-1]


async def test_show_steers_no_terminal(project):
    """Control characters of the data reach the terminal as blanks."""
    rows = some_rows(1)
    rows[0][1] = "good \x1b]0;title\x07 \x9b31m"
    project.write(rows)
    await project.run("run")
    out = (await project.run("show", "k0")).out
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in out.replace("\n", ""))


async def test_show_from_the_store_alone(finished):
    """With --store the request is that of the config in the store; without one the rest is shown, and who has it."""
    (finished.folder / "prompt.md").unlink()
    ran = await finished.run("show", "k3", "--store", "t.db")
    assert ran.code == 0
    assert '"content":"Judge the sentence.\\n"' in ran.out
    assert '"label":"positive"' in ran.out
    finished.sql("DELETE FROM recipes")
    ran = await finished.run("show", "k3", "--store", "t.db")
    assert "its request cannot be shown: t.db: the config of t is not in the store" in ran.out
    assert '"label":"positive"' in ran.out
    ran = await finished.run("show", "k3", "--store", "t.db", "--curl")
    assert ran.code == 2
    assert "name the config" in ran.err
