"""``rowcall batch``: an OpenAI batch file against any endpoint."""

from __future__ import annotations

import asyncio
import json
import re

import httpx
import pytest
from batchkit import line

from rowcall.config import load
from rowcall.mock.server import _Verdict
from rowcall.model.errors import ConfigError
from rowcall.providers.openai_batch import join_line_url


async def test_a_batch_that_is_killed_goes_on(project):
    """Of 200 lines killed at half none that was stored is called again, and the output parses with OpenAI's types."""
    project.api.latency = 0.05
    project.lines([line(n) for n in range(200)])
    command = ("batch", "in.jsonl", "-o", "out.jsonl", "--base-url", project.api.url, "-c", "8")
    process = await project.start(*command)
    await asyncio.wait_for(project.api.wait_for_calls(100), 30)
    await project.kill(process)
    assert not (project.folder / "out.jsonl").exists()
    ran = await project.process(*command, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["done"] == 200
    assert 200 <= len(project.api.calls) <= 200 + 3 * 8
    written = project.written()
    assert {each["custom_id"] for each in written} == {f"r{n}" for n in range(200)}
    assert len(written) == 200
    assert all(each["error"] is None and each["response"]["status_code"] == 200 for each in written)
    _parse_with_openai(written)


def _parse_with_openai(written):
    types = pytest.importorskip("openai.types.chat", reason="needs the extra judges: pip install 'rowcall[judges]'")
    for each in written:
        completion = types.ChatCompletion.model_validate(each["response"]["body"], strict=True)
        assert "positive" in completion.choices[0].message.content
        assert completion.usage.total_tokens


async def test_lines_are_sent_as_they_are(project):
    """Each line's body goes out unchanged, to its own URL, with the key of the environment and the given headers."""
    project.env["OPENAI_API_KEY"] = "sk-test"
    embed = {"model": "e", "input": "good", "dimensions": 4}
    lines = [line(1), line(2, url="/v1/embeddings", body=embed)]
    report = await project.batch(lines, header=("X-Team: research",))
    assert report.done == 2
    calls = {call.path: call for call in project.api.calls}
    assert json.loads(calls["/v1/chat/completions"].body) == lines[0]["body"]
    assert json.loads(calls["/v1/embeddings"].body) == embed
    assert {call.headers["Authorization"] for call in calls.values()} == {"Bearer sk-test"}
    assert {call.headers["X-Team"] for call in calls.values()} == {"research"}
    stored = b"".join(each.read_bytes() for each in project.folder.glob("out*"))
    assert b"sk-test" not in stored
    assert b"research" not in stored


async def test_what_the_api_answers_is_a_response_and_what_never_came_is_an_error(project):
    """400 and a lasting 500 are responses with their bodies; a connection that always breaks is an error."""
    project.api.poison = {"bad": 400, "ill": 500}.get
    honest = project.api._by_poison
    project.api._by_poison = lambda call: _Verdict("reset") if call.text == "cut" else honest(call)
    texts = ["fine 1", "bad", "fine 2", "ill", "fine 3", "cut", *(f"fine {n}" for n in range(4, 30))]
    await project.batch([line(n, text) for n, text in enumerate(texts)], concurrency=2)
    by_text = {texts[int(each["custom_id"][1:])]: each for each in project.written()}
    assert by_text["bad"]["response"]["status_code"] == 400
    assert by_text["bad"]["response"]["body"]["error"]["code"] == "poison"
    assert by_text["ill"]["response"]["status_code"] == 500
    assert by_text["ill"]["response"]["request_id"].startswith("req_")
    assert by_text["cut"]["response"] is None
    assert set(by_text["cut"]["error"]) == {"code", "message"}
    assert len(by_text) == len(texts)


async def test_answers_are_not_judged(project):
    """A truncated or refused answer under 200 is kept whole, as OpenAI would."""
    await project.batch([line(1, body=line(1)["body"] | {"max_tokens": 1})])
    [written] = project.written()
    assert written["response"]["body"]["choices"][0]["finish_reason"] == "length"


async def test_the_order_of_the_lines(project):
    """By default lines stand in the order of their ends, with --ordered in that of the input."""
    slow = asyncio.Event()
    decide = project.api._decide

    async def in_reverse(call, question):
        if call.text == "first":
            await slow.wait()
        verdict = await decide(call, question)
        if call.text == "last":
            asyncio.get_running_loop().call_later(0.05, slow.set)
        return verdict

    project.api._decide = in_reverse
    # the very first call of a run goes out alone, so the slow one is the second
    lines = [line(0, "alone"), line(1, "first"), line(2, "last")]
    await project.batch(lines)
    assert [each["custom_id"] for each in project.written()] == ["r0", "r2", "r1"]
    await project.batch(lines, ordered=True)
    assert [each["custom_id"] for each in project.written()] == ["r0", "r1", "r2"]
    assert len(project.api.calls) == 3


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (line(0), ["in.jsonl:2", "'r0' is already used at in.jsonl:1"]),
        (line(1, body={"model": "m", "stream": True}), ["in.jsonl:2", "stream: true"]),
        (line(1, method="GET"), ["in.jsonl:2", 'method must be "POST"']),
        (line(1, url="https://elsewhere.example/v1"), ["in.jsonl:2", "url must be a path"]),
    ],
)
async def test_a_line_that_cannot_be_called_stops_before_the_first_call(project, bad, said):
    """The message names the line, and of a repeated custom_id both; nothing is called and nothing made."""
    project.lines([line(0), bad])
    ran = await project.run("batch", "in.jsonl", "-o", "out.jsonl", "--base-url", project.api.url)
    assert ran.code == 2
    assert all(words in ran.err for words in said), ran.err
    assert not project.api.calls
    assert not list(project.folder.glob("out*"))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--header", "sk-oops"], "--header needs a name and a value"),
        (["--base-url", "nowhere"], "api.base_url must be a URL"),
        (["-o", "-"], "--store FILE"),
        (["-o", "-", "--store", "s.db", "--json"], "cannot both go to stdout"),
    ],
)
async def test_flags_that_cannot_be_used(project, args, said):
    """A flag that cannot be used is named with what to do, exit 2, and no secret is repeated."""
    project.lines([line(0)])
    ran = await project.run("batch", "in.jsonl", "-o", "out.jsonl", "--base-url", project.api.url, *args)
    assert ran.code == 2
    assert said in ran.err
    assert "sk-oops" not in ran.err


@pytest.mark.parametrize(
    ("base", "url", "expected"),
    [
        ("http://h/v1", "/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/", "/v1/responses", "http://h/v1/responses"),
        ("http://h", "/v1/embeddings", "http://h/v1/embeddings"),
        ("https://h/api/v1", "/v1/chat/completions", "https://h/api/v1/chat/completions"),
        ("https://h/api/v1", "/api/v1/x", "https://h/api/v1/x"),
        ("https://h/v1?api-version=3", "/chat/completions?a=b", "https://h/v1/chat/completions?api-version=3&a=b"),
        ("http://h/v1", "//evil.example/v1", "http://h/v1/evil.example/v1"),
    ],
)
def test_urls_are_joined(base, url, expected):
    """What the base URL ends with is not repeated, and a line never leads to another host."""
    assert str(join_line_url(httpx.URL(base), url)) == expected


CONFIG = """
[input]
path = "in.jsonl"
key = "custom_id"
format = "{input}"
[api]
preset = "{preset}"
base_url = "http://127.0.0.1:9/v1"
[output]
path = "out.jsonl"
format = "{output}"
order = "{order}"
"""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"input": "jsonl"}, "needs an OpenAI batch file as its input"),
        ({"preset": "http"}, 'output.format = "openai-batch-output" works only with'),
        ({"output": "jsonl"}, 'order = "completion" works only with'),
        ({"more": "[request]\nbody = 1"}, "[request] has no effect with"),
    ],
)
def test_batch_lines_in_a_config(tmp_path, changed, said):
    """A config may say all that the verb does; what does not go together is named."""
    fit = {"input": "openai-batch", "preset": "openai-batch", "output": "openai-batch-output", "order": "completion"}
    (tmp_path / "config.toml").write_text(CONFIG.format(**(fit | changed)) + changed.get("more", ""))
    if not said:
        load(tmp_path / "config.toml")
        return
    with pytest.raises(ConfigError, match=re.escape(said)):
        load(tmp_path / "config.toml")
