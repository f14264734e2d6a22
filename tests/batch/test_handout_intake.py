"""The way through a provider's own batch API: requests handed out as a file, its output file taken in."""

from __future__ import annotations

import csv
import json

import pytest

from rowcall.batchapi.write_requests import BatchShape, _openai_line, write_requests
from rowcall.config import load
from rowcall.run.pipeline import Pipeline

CONFIG = """
name = "t"
[input]
path = "in.csv"
key = "id"
[api]
preset = "{preset}"
base_url = "{url}"
api_key = {{ env = "BATCH_TEST_KEY" }}
[request]
path = "{path}"
[request.body]
model = "m"
messages = [{{ role = "user", content = "{{{{ row.text }}}}" }}]
[response]
extract = "{extract}"
[output]
path = "out.jsonl"
"""
OPENAI = {"preset": "openai", "path": "/chat/completions", "extract": "choices[0].message.content"}
ANTHROPIC = {"preset": "anthropic", "path": "/messages", "extract": "content[0].text"}


@pytest.fixture
def job(project):
    """A project of six rows that asks OpenAI."""
    project.env["BATCH_TEST_KEY"] = "sk-batch-test"
    project.setup = lambda api: project.config(CONFIG.format(url=project.api.url, **api))
    project.setup(OPENAI)
    rows(project, 6)
    return project


def rows(project, count, **edited):
    with (project.folder / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([f"k{n}", edited.get(f"k{n}", f"{n} is good")] for n in range(count))


def write(project, lines, name="output.jsonl"):
    (project.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def answer(key, text="fine", *, end="stop"):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": end}
    body = {"id": "c", "choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}
    return {"custom_id": key, "response": {"status_code": 200, "request_id": f"req-{key}", "body": body}, "error": None}


async def run(project):
    """A run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BATCH_TEST_KEY", "sk-batch-test")
        return await Pipeline(load(project.folder / "config.toml")).run()


async def test_there_and_back(job):
    """Pending records go out under their keys without any secret; what comes back ends as a run would end it."""
    ran = await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    assert ran.code == 0, ran.err
    requests = job.written("requests.jsonl")
    assert [each["custom_id"] for each in requests] == [f"k{n}" for n in range(6)]
    assert {(each["method"], each["url"]) for each in requests} == {("POST", "/v1/chat/completions")}
    assert requests[2]["body"] == {"model": "m", "messages": [{"role": "user", "content": "2 is good"}]}
    assert "sk-batch-test" not in (job.folder / "requests.jsonl").read_text()
    refused = {"error": {"message": "no", "type": "invalid_request_error", "code": None}}
    expired = {"code": "batch_expired", "message": "too late"}
    busy = {"status_code": 500, "request_id": "r", "body": {"error": {"message": "oh"}}}
    write(
        job,
        [
            answer("k0"),
            answer("k1", end="length"),
            {"custom_id": "k2", "response": {"status_code": 400, "request_id": "r", "body": refused}, "error": None},
            {"custom_id": "k3", "response": None, "error": expired},
            {"custom_id": "k4", "response": busy, "error": None},
            answer("elsewhere"),
        ],
    )
    taken = await job.run("import", "output.jsonl")
    assert taken.code == 1
    assert "6 answers: 1 done, 2 failed, 2 to be called again, 1 unknown" in taken.err
    assert "unknown: elsewhere;" in taken.err
    assert job.sql("SELECT id, status, reason FROM jobs") == [
        ("k0", "done", None),
        ("k1", "failed", "truncated"),
        ("k2", "failed", "bad_request"),
        ("k3", "pending", None),
        ("k4", "pending", None),
        ("k5", "pending", None),
    ]
    assert job.sql("SELECT attempts, input_tokens, output_tokens FROM totals") == [(3, 20, 4)]
    assert job.sql("SELECT request_id, http_status FROM jobs WHERE id = 'k0'") == [("req-k0", 200)]


async def test_what_comes_back_costs_half(job):
    """With a price an answer of a batch costs half of it, once."""
    job.config((job.folder / "config.toml").read_text() + "[price]\ninput = 2.0\noutput = 8.0\n")
    await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    write(job, [answer("k0")])
    await job.run("import", "output.jsonl")
    await job.run("import", "output.jsonl")
    assert job.sql("SELECT cost FROM totals") == [((10 * 2000 + 2 * 8000) // 2,)]


async def test_taking_in_twice_changes_nothing(job):
    """The same file again is all known before; the store is as it was."""
    await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    write(job, [answer(f"k{n}") for n in range(6)])
    assert (await job.run("import", "output.jsonl")).code == 0
    before = job.sql("SELECT * FROM jobs"), job.sql("SELECT * FROM totals")
    again = await job.run("import", "output.jsonl", "--json")
    assert again.code == 0
    assert json.loads(again.out)["before"] == 6
    assert (job.sql("SELECT * FROM jobs"), job.sql("SELECT * FROM totals")) == before
    report = await run(job)
    assert (report.done, len(job.api.calls)) == (6, 0)
    assert {each["result"] for each in job.written()} == {"fine"}


async def test_an_answer_that_was_called_off_does_not_come_back(job):
    """Once a person has set a record back, the file that answered it before is no answer any more."""
    await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    write(job, [answer("k0")])
    await job.run("import", "output.jsonl")
    await job.run("retry", "k0", "--done", "--yes")
    assert "1 known before" in (await job.run("import", "output.jsonl")).err
    assert job.sql("SELECT status FROM jobs WHERE id = 'k0'") == [("pending",)]


async def test_only_what_is_still_to_do_goes_out(job):
    """Done records, and repeated rows, are no request; failed ones go out where they are asked for."""
    job.api.poison = {"1 is good": 400}.get
    await run(job)
    rows(job, 8)
    with (job.folder / "in.csv").open("a") as file:
        file.write("k7,7 is good\n")
    await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    assert [each["custom_id"] for each in job.written("requests.jsonl")] == ["k6", "k7"]
    await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl", "--only", "failed")
    assert [each["custom_id"] for each in job.written("requests.jsonl")] == ["k1"]


async def test_an_answer_to_what_was_edited_since_is_not_taken(job):
    """A record that changed after it went out keeps its own answer; edited back, it has the one that was paid for."""
    await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    rows(job, 6, k1="another text that is good")
    report = await run(job)
    assert report.done == 6
    calls = len(job.api.calls)
    rows(job, 6, k1="and one more")
    await job.run("export", "--format", "openai-batch", "-o", "ignored.jsonl", "--only", "done")
    write(job, [answer("k1", "to the first text")])
    taken = await job.run("import", "output.jsonl")
    assert taken.code == 1
    assert "1 changed since" in taken.err
    assert "changed since: k1;" in taken.err
    assert job.sql("SELECT status FROM jobs WHERE id = 'k1'") == [("pending",)]
    rows(job, 6)
    await run(job)
    assert job.written()[1]["result"] == "to the first text"
    assert len(job.api.calls) == calls


async def test_a_record_that_went_out_twice_with_other_content_takes_neither(job):
    """Of two requests under one key it cannot be told which one an answer belongs to."""
    await job.run("export", "--format", "openai-batch", "-o", "one.jsonl")
    rows(job, 6, k1="another text")
    await job.run("export", "--format", "openai-batch", "-o", "two.jsonl")
    write(job, [answer("k0"), answer("k1", "to which?")])
    taken = await job.run("import", "output.jsonl")
    assert "1 done, 1 changed since" in taken.err
    assert job.sql("SELECT status FROM jobs WHERE id = 'k1'") == [("pending",)]


async def test_answers_to_another_prompt_need_a_word(job):
    """With a changed prompt the export asks, as a run does, and writes nothing."""
    await run(job)
    job.replace('model = "m"', 'model = "n"')
    ran = await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    assert ran.code == 2
    assert "the request has changed" in ran.err
    assert not (job.folder / "requests.jsonl").exists()
    await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl", "--if-changed", "redo")
    assert len(job.written("requests.jsonl")) == 6


async def test_more_than_a_provider_takes_is_several_files(job):
    """Files are full at so many requests or bytes, numbered, and all there or none."""
    config = load(job.folder / "config.toml")
    written = await write_requests(config, job.folder / "r.jsonl", BatchShape(4, 10**6, _openai_line))
    assert [path.name for path in written.files] == ["r.jsonl", "r-2.jsonl"]
    assert [len(job.written(path.name)) for path in written.files] == [4, 2]
    size = len((job.folder / "r.jsonl").read_bytes().splitlines(keepends=True)[0])
    written = await write_requests(config, job.folder / "s.jsonl", BatchShape(100, 2 * size, _openai_line))
    assert [len(job.written(path.name)) for path in written.files] == [2, 2, 2]
    assert all(path.stat().st_size <= 2 * size for path in written.files)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('model = "m"', 'model = { env = "BATCH_TEST_KEY" }', "the secret BATCH_TEST_KEY"),
        ('model = "m"', 'model = "m"\nstream = true', "in.csv:2: stream: true"),
        ("[request]", '[request]\nmethod = "PUT"', "in.csv:2: PUT /v1/chat/completions has no JSON body"),
    ],
)
async def test_requests_that_no_batch_takes(job, old, new, said):
    """A secret in a body, a stream, another method: refused by name, and no file is made."""
    job.replace(old, new)
    ran = await job.run("export", "--format", "openai-batch", "-o", "requests.jsonl")
    assert ran.code == 2
    assert said in ran.err
    assert not (job.folder / "requests.jsonl").exists()


async def test_anthropic_there_and_back(job):
    """Requests are items of ``requests``; results of every type end as they should."""
    job.setup(ANTHROPIC)
    await job.run("export", "--format", "anthropic-batch", "-o", "requests.jsonl")
    assert job.written("requests.jsonl")[0] == {
        "custom_id": "k0",
        "params": {"model": "m", "messages": [{"role": "user", "content": "0 is good"}]},
    }
    message = {"id": "msg", "type": "message", "content": [{"type": "text", "text": "fine"}], "stop_reason": "end_turn"}
    too_bad = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    results = [
        {"type": "succeeded", "message": message},
        {"type": "errored", "error": too_bad},
        {"type": "errored", "error": overloaded},
        {"type": "expired"},
        {"type": "canceled"},
    ]
    write(job, [{"custom_id": f"k{n}", "result": result} for n, result in enumerate(results)])
    taken = await job.run("import", "output.jsonl")
    assert "5 answers: 1 done, 1 failed, 3 to be called again" in taken.err
    assert job.sql("SELECT answer FROM records WHERE id = 'k0'") == [('"fine"',)]


async def test_what_anthropic_does_not_take(job):
    """A key that is no custom_id there, and requests to another path, are named."""
    ran = await job.run("export", "--format", "anthropic-batch", "-o", "requests.jsonl")
    assert "these requests go to /v1/chat/completions" in ran.err
    job.setup(ANTHROPIC)
    (job.folder / "in.csv").write_text("id,text\nnot a name,x\n")
    ran = await job.run("export", "--format", "anthropic-batch", "-o", "requests.jsonl")
    assert ran.code == 2
    assert "'not a name' cannot be a custom_id" in ran.err


@pytest.mark.parametrize("line", [{"a": 1}, {"custom_id": "k0"}, {"custom_id": "k0", "response": {"body": {}}}])
async def test_a_line_that_is_none_of_an_output_file(job, line):
    """The message names the line and what one looks like."""
    write(job, [line])
    ran = await job.run("import", "output.jsonl")
    assert ran.code == 2
    assert "output.jsonl:1: is not a line of a batch's output file" in ran.err
