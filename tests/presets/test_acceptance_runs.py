"""The acceptance contract in a run: budgets by reason, a longer answer for one that was cut, the text that is kept."""

import json

import pytest
from aiohttp import web
from presetkit import CHAT

from rowcall.model.job import Status


def completion(text, end="stop"):
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": end}
    return web.json_response({"choices": [choice], "usage": usage})


def saying(api, *texts):
    """Let the server give these answers to the text ``odd``, the last one again and again; others get the truth."""
    left = list(texts)
    api.respond = lambda call: completion(left.pop(0) if len(left) > 1 else left[0]) if call.text == "odd" else None


async def test_a_rejected_answer_is_asked_for_again(batch, api):
    """By default once for each reason: an answer that is no JSON and then one that breaks the schema leave a third."""
    saying(api, "none", '{"label": 1}', '{"label": "good"}')
    schema = '[response]\nschema = { properties = { label = { type = "string" } } }\n'
    report = await batch.run(["good", "odd"], request=CHAT + schema)
    assert report.counts.of(Status.DONE) == 2
    assert json.loads(batch.answers()["k1"]) == {"label": "good"}
    assert [reason for reason, *_ in batch.tries("k1")] == ["not_json", "schema"]


@pytest.mark.parametrize("more", [0, 2])
async def test_a_budget_is_its_reasons_own(batch, api, more):
    """The config says how often an answer is asked for again for a reason."""
    saying(api, "none")
    response = f"[response]\nparse = 'json'\nretry = {{ not_json = {more} }}\n"
    report = await batch.run(["good", "odd"], request=CHAT + response)
    assert (report.counts.of(Status.DONE), report.counts.of(Status.FAILED)) == (1, 1)
    assert len(api.calls_of("odd")) == 1 + more


async def test_the_rejected_text_is_kept(batch, api):
    """The whole text that was rejected stands in the record's history, not the start of the reply around it."""
    text = "I would say that it is " + "very " * 1000 + "good"
    saying(api, text)
    await batch.run(["good", "odd"], request=CHAT + "[response]\nparse = 'json'\n")
    assert [body for _, _, body in batch.tries("k1")] == [text, text]


async def test_the_schema_names_the_place_and_the_value(batch, api):
    """The message has the failing place in the answer, the rule, and the value that is there."""
    saying(api, '{"items": [{"score": 1}, {"score": "high"}]}')
    number = 'items = { properties = { score = { type = "number" } } }'
    schema = f"[response]\nschema = {{ properties = {{ items = {{ {number} }} }} }}\n"
    await batch.run(["good", "odd"], request=CHAT + schema)
    _, message, _ = batch.tries("k1")[0]
    assert message == 'answer.items[1].score must be number, but is "high"'


async def test_what_was_cut_is_asked_for_longer(batch, api):
    """A cut answer is asked for once more with the larger limit, by another key, and is done when that suffices."""
    response = (
        '[response]\nparse = "json"\non_truncated = { max_tokens = 500 }\n'
        '[request.headers]\nIdempotency-Key = "{{ call.key }}"\n'
    )
    report = await batch.run(["good"], request=CHAT.replace("100", "2") + response)
    assert report.counts.of(Status.DONE) == 1
    short, long = api.calls_of("good")
    assert [call.json()["max_tokens"] for call in (short, long)] == [2, 500]
    assert long.headers["Idempotency-Key"] == short.headers["Idempotency-Key"] + "-1"
    assert [reason for reason, *_ in batch.tries()] == ["truncated"]


@pytest.mark.parametrize(("more", "calls"), [("", 1), ("on_truncated = { max_tokens = 3 }", 2)])
async def test_what_stays_cut_fails(batch, api, more, calls):
    """A cut answer is never asked for with the same limit, and once at most with the larger one."""
    report = await batch.run(["good"], request=CHAT.replace("100", "2") + f'[response]\nparse = "json"\n{more}\n')
    assert report.counts.of(Status.FAILED) == 1
    assert len(api.calls) == calls
    assert {reason for reason, *_ in batch.tries()} == {"truncated"}


async def test_assertions_of_a_rest_api(batch, api):
    """A reply that breaks an assertion is rejected, and the message names the expression."""
    replies = [{"status": "busy"}, {"status": "ok", "name": "x"}]
    api.respond = lambda call: web.json_response(replies.pop(0))
    request = '[request]\npath = "/things"\n[response]\nextract = "name"\nassert = ["status == \'ok\'"]\n'
    report = await batch.run(["a"], preset="http", request=request)
    assert report.counts.of(Status.DONE) == 1
    assert batch.answers() == {"k0": '"x"'}
    assert [try_[:2] for try_ in batch.tries()] == [("assertion", "status == 'ok' does not hold")]
