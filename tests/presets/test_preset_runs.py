"""Each preset from end to end: a run over a real socket against a server that speaks its API."""

import json

import pytest

from rowcall.config import load
from rowcall.mock import MockAPI
from rowcall.mock.sentiment import sentiment
from rowcall.model.job import Status
from rowcall.run.pipeline import Pipeline

TEXTS = ["What a good film", "A terrible, boring film", "It is a film", "Not good at all"]
USER = 'role = "user"'
BODIES = {
    "openai": f'model = "m"\nmax_completion_tokens = 50\nmessages = [{{ {USER}, content = "{{{{ row.text }}}}" }}]',
    "openai responses": 'model = "m"\nmax_output_tokens = 50\ninput = "{{ row.text }}"',
    "anthropic": f'model = "m"\nmax_tokens = 50\nmessages = [{{ {USER}, content = "{{{{ row.text }}}}" }}]',
    "gemini": (
        'model = "m"\ngenerationConfig = { maxOutputTokens = 50 }\n'
        'contents = [{ parts = [{ text = "{{ row.text }}" }] }]'
    ),
}
FORMS = list(BODIES)
BODIES |= dict.fromkeys(("openrouter", "ollama", "vllm"), BODIES["openai"].replace("max_completion", "max"))
RESPONSE = '[response]\nparse = "json"\non_truncated = { max_tokens = 50 }\n'


def config(name):
    """The request of a preset, and where it finds its API."""
    preset, _, path = name.partition(" ")
    path = f'[request]\npath = "/{path}"\n' if path else ""
    return preset, f'api_key = {{ file = "key.txt" }}\n{path}[request.body]\n{BODIES[name]}\n{RESPONSE}'


@pytest.fixture
async def api():
    async with MockAPI(latency=0.002, api_key="sk-1") as api:
        yield api


@pytest.fixture
def run(batch, api):
    async def run(name, **replaced):
        preset, request = config(name)
        for old, new in replaced.items():
            request = request.replace(old, new)
        (batch.folder / "key.txt").write_text("sk-1\n")
        base_url = f"{api.origin}/v1beta" if preset == "gemini" else api.url
        return await batch.run(TEXTS, preset=preset, base_url=base_url, request=request)

    return run


@pytest.mark.parametrize("name", BODIES)
async def test_preset(run, batch, api, name):
    """Every record has the answer that the server gave about its text, with one call each, and tokens are counted."""
    report = await run(name)
    assert report.counts.by_status == {Status.DONE: len(TEXTS)}
    assert len(api.calls) == len(TEXTS)
    answers = [json.loads(answer) for answer in batch.answers().values()]
    assert [answer["label"] for answer in answers] == [sentiment(text).label for text in TEXTS]
    [(least, written)] = batch.sql("SELECT min(input_tokens), min(output_tokens) FROM jobs")
    assert least >= min(map(len, TEXTS)) // 4
    assert written > 5


@pytest.mark.parametrize("name", FORMS)
async def test_preset_whose_answers_are_cut(run, batch, api, name):
    """A limit that is too small is met once, and then the larger one is asked for, under each preset's own name."""
    report = await run(name, **{"okens = 50\n": "okens = 2\n", "maxOutputTokens = 50": "maxOutputTokens = 2"})
    assert report.counts.by_status == {Status.DONE: len(TEXTS)}
    assert len(api.calls) == 2 * len(TEXTS)
    assert {try_[0] for n in range(len(TEXTS)) for try_ in batch.tries(f"k{n}")} == {"truncated"}
    [(spent, kept)] = batch.sql(
        "SELECT sum(input_tokens), (SELECT input_tokens FROM totals) FROM "
        "(SELECT input_tokens FROM tries UNION ALL SELECT input_tokens FROM results)"
    )
    assert spent == kept > 0


@pytest.mark.parametrize("name", FORMS)
async def test_preset_with_a_wrong_key(run, batch, api, name):
    """A key that the API does not know stops the run after one call, and nothing is charged."""
    api._key = "another"
    report = await run(name)
    assert report.ending.reason == "bad_key"
    assert len(api.calls) == 1
    assert batch.sql("SELECT count(*), max(attempts) FROM jobs WHERE status = 'pending'") == [(len(TEXTS), 0)]


async def test_the_mock_preset_speaks_responses(batch):
    """The fake API inside the process answers OpenAI's responses too."""
    request = '[request]\npath = "/responses"\n[request.body]\nmodel = "m"\ninput = "{{ row.text }}"\n'
    text = 'name = "t"\n[input]\npath = "in.csv"\n[api]\npreset = "mock"\n[api.mock]\nlatency = "1ms"\nerrors = "0%"\n'
    (batch.folder / "in.csv").write_text("text\ngood\n")
    (batch.folder / "config.toml").write_text(f'{text}rate_limited = "0%"\n{request}{RESPONSE}')
    report = await Pipeline(load(batch.folder / "config.toml")).run()
    assert report.counts.by_status == {Status.DONE: 1}
