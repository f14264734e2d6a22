"""``rowcall preview``: what would be sent and what it would take; with ``--send`` a sample of answers."""

from __future__ import annotations

import subprocess

import pytest
from project import some_rows

KEY = "sk-the-very-secret-value"


@pytest.fixture
def keyed(project):
    """A project with a key."""
    project.env["API_KEY"] = KEY
    project.write(some_rows(20))
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "API_KEY" }')
    return project


async def test_the_first_requests(keyed):
    """Method, URL, headers and body of the first records, each with its place and key; nothing sent or written."""
    before = sorted(path.name for path in keyed.folder.iterdir())
    ran = await keyed.run("preview", "-n", "2")
    assert ran.code == 0, ran.err
    assert ran.out.count("POST ") == 2
    assert "in.csv:2  key k0\n  POST " in ran.out
    assert '"content": "sentence number 1 is good"' in ran.out
    assert "number 2 is" not in ran.out
    assert "authorization: Bearer $API_KEY" in ran.out
    assert not keyed.api.calls
    assert sorted(path.name for path in keyed.folder.iterdir()) == before


async def test_what_it_would_take(keyed):
    """Records, tokens by characters and time by the slots; where the pace is slower, by the pace."""
    ran = await keyed.run("preview")
    assert "\n20 records\nabout " in ran.out
    assert " tokens in per call, " in ran.out
    assert "for 20 calls: 8 at a time" in ran.out
    ran = await keyed.run("preview", "--rate", "2/min")
    assert ran.out.splitlines()[-1] == "about 10m00s for 20 calls: limited by [pace] requests = 2/min"


async def test_what_it_would_cost(keyed):
    """With [price] the cost of a call and of all of them; as guessed, then as measured."""
    assert "$" not in (await keyed.run("preview")).out.replace("$API_KEY", "")
    keyed.replace("[stop]", "[price]\ninput = 1.0\nper_call = 0.25\n[stop]")
    assert "about $0.25 per call, $5.00 in all" in (await keyed.run("preview")).out.replace("0.2500", "0.25")
    ran = await keyed.run("preview", "-n", "1", "--send")
    assert "in all\nabout $0.25" in ran.out.replace("0.2500", "0.25")


async def test_what_the_cost_hangs_on(keyed):
    """A guess says how many tokens out it takes a call to have; none is guessed once it is measured."""
    keyed.replace("[stop]", "[price]\ninput = 1.0\noutput = 2.0\n[stop]")
    assert (
        "in all, assuming 500 tokens out per call; rowcall preview --send measures it"
        in (await keyed.run("preview")).out
    )
    assert "assumed for each" not in (await keyed.run("preview", "-n", "1", "--send")).out


async def test_repeated_records(keyed):
    """With [input] dedupe the numbers are said to count each record that sends the same."""
    assert "called once" not in (await keyed.run("preview")).out
    keyed.replace('key = "id"', 'key = "id"\ndedupe = true')
    assert "calls the API once for records that send the same" in (await keyed.run("preview")).out


async def test_after_a_run_the_store_knows_better(finished):
    """Done records are counted, and tokens and latency are those that were met."""
    finished.rows(some_rows(30))
    ran = await finished.run("preview")
    assert "30 records, 10 of them done already" in ran.out
    assert "for 20 calls: 8 at a time" in ran.out
    assert ran.out.rstrip().endswith("as in the last run")
    finished.rows(some_rows(10))
    assert (await finished.run("preview")).out.splitlines()[-1] == "10 records, 10 of them done already"


async def test_curl(keyed):
    """``--curl`` gives one command for each record, which a shell runs, with the key from its variable."""
    ran = await keyed.run("preview", "-n", "2", "--curl")
    script = f'curl() {{ printf "%s\\0" "$@"; }}\n{ran.out}'
    words = _words(script)
    assert words.count(f"authorization: Bearer {KEY}") == 2
    assert KEY not in ran.out


def _words(script):
    env = {"PATH": "/usr/bin:/bin", "API_KEY": KEY}
    return subprocess.run(["bash", "-c", script], env=env, capture_output=True, check=True).stdout.decode().split("\0")


async def test_send(keyed):
    """``--send`` makes exactly the calls shown, shows their answers and measures; no store, no export."""
    ran = await keyed.run("preview", "-n", "3", "--send")
    assert ran.code == 0, ran.err
    assert len(keyed.api.calls) == 3
    assert ran.out.count("HTTP 200 in ") == 3
    assert "k0: HTTP 200 in " in ran.out
    assert '"label":"positive"' in ran.out
    assert ran.out.rstrip().endswith("as just measured")
    assert not (keyed.folder / "t.db").exists()
    assert not (keyed.folder / "out.csv").exists()


async def test_send_or_curl(keyed):
    """Commands to be run by hand and calls made here exclude each other: refused, and nothing is sent."""
    ran = await keyed.run("preview", "--curl", "--send")
    assert ran.code == 2
    assert "do not go together" in ran.err
    assert not keyed.api.calls


async def test_a_sample_that_fails_says_what_to_do(keyed):
    """A refused call is shown with its reason and advice, the others are made all the same; exit 1."""
    keyed.api.poison = {"sentence number 1 is good"}
    ran = await keyed.run("preview", "--send")
    assert ran.code == 1
    assert len(keyed.api.calls) == 3
    assert "k1: failed in " in ran.out
    assert "\n  The API failed on this call. Try again later.\n" in ran.out


async def test_no_key_anywhere(keyed):
    """The key is in no output of any form, though the API repeats it."""
    from aiohttp import web

    def echo(call):
        return web.json_response({"error": {"message": f"bad key {call.headers['Authorization']}"}}, status=401)

    keyed.api.respond = echo
    rans = [await keyed.run("preview", *args) for args in ([], ["--curl"], ["--send"], ["-n", "1", "--send"])]
    assert [ran.code for ran in rans] == [0, 0, 1, 1]
    for ran in rans:
        assert KEY not in ran.out + ran.err


async def test_the_data_steers_no_terminal(keyed):
    """Escapes in a record reach the terminal neither in the body nor in the key."""
    rows = some_rows(1)
    rows[0][:2] = ["k\x1b[31m", "good \x1b]0;title\x07"]
    keyed.rows(rows)
    for args in ([], ["--curl"], ["--send"]):
        assert "\x1b" not in (await keyed.run("preview", *args)).out


async def test_a_template_that_does_not_fit(keyed):
    """An unknown column is named with the line of the config, exit 2; ``run`` says the same."""
    keyed.replace("row.text", "row.txet")
    for verb in ("preview", "run"):
        ran = await keyed.run(verb)
        assert ran.code == 2
        assert "config.toml:15: request.body.messages[1].content: no column 'txet'" in ran.err
        assert "id, text, note" in ran.err


async def test_a_handler(project):
    """A handler's requests cannot be known; ``--send`` shows what it answers."""
    project.write(some_rows(3))
    text = (project.folder / "config.toml").read_text()
    a, b = text.index("[request.body]"), text.index("[output]")
    project.config(text[:a] + '[handler]\npath = "tasks.py:label"\n' + text[b:])
    (project.folder / "tasks.py").write_text("async def label(row, call):\n    return {'label': row['text']}\n")
    ran = await project.run("preview")
    assert ran.code == 0, ran.err
    assert "a handler makes its" in ran.out
    ran = await project.run("preview", "-n", "1", "--send")
    assert "k0: answered" in ran.out
    assert ': {"label":"sentence number 0 is good"}\n' in ran.out
