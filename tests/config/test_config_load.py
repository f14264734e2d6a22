import copy
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from rowcall.config import Config, Rate, load
from rowcall.config.error_text import ConfigFault, explain
from rowcall.config.load import default_name
from rowcall.model.errors import ConfigError

MINIMAL = """\
[input]
path = "rows.csv"
[api]
preset = "mock"
[request.body]
model = "m"
"""

REST = """\
[input]
path = "rows.csv"
[api]
preset = "http"
base_url = "https://api.example.com"
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="config.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def faults(write):
    """The problems of a config as (line, what, remedy)."""

    def faults(text, **overrides):
        path = write(text)
        with pytest.raises(ConfigError) as caught:
            load(path, overrides=overrides)
        assert caught.value.exit_code == 2
        return [(p.where.removeprefix(f"{path}:"), p.what, p.remedy) for p in caught.value.problems]

    return faults


FULL = """\
name = "labels-2"
[input]
path = "sub/in.tsv"
key = "{{ row.a }}-{{ row.b }}"
header = ["a", "b"]
quoting = true
encoding = "utf-16"
sql = "select 1"
on_bad = "skip"
dedupe = true
[api]
preset = "http"
base_url = "http://127.0.0.1:8080/v1?api-version=2"
api_key = { env = "KEY" }
headers = { X-Team = "a" }
timeout = "2m"
connect_timeout = 0.5
proxy = "http://127.0.0.1:3128"
ca_file = "ca.pem"
client_cert = "me.pem"
client_key = "me.key"
mock = { latency = 0, rate_limited = "10%", errors = 0.2, resets = "1%", retry_after = "50ms", seed = 7 }
[request]
method = "PUT"
path = "/items/{{ row.a }}"
params = { lang = ["de", { env = "LANG" }], n = 1 }
headers = { Idempotency-Key = "{{ call.key }}", Authorization = "Bearer {{ row.b }}" }
body = [1, 2.5, { file = "x.md" }]
attachments = "images"
max_attachment = "1.5 MB"
[response]
extract = "a[0].b"
parse = "text"
schema = { type = "object" }
answer = [404, "4XX"]
assert = ["a == 'b'"]
retry = { schema = 3, filtered = 1 }
on_truncated = { max_tokens = 7 }
[output]
path = "/tmp/out.data"
format = "jsonl"
columns = { x = "a.b", "column with spaces" = "@" }
[group]
size = 100
characters = 5000
[pace]
concurrency = 1
processes = 2
adaptive = false
requests = ["30/10s", "9000/day"]
tokens = { input = "1000/s" }
loop = "uvloop"
[retry]
attempts = 1
backoff = { first = "50ms", max = "5m" }
max_wait = "15m"
[price]
from = "genai-prices"
model = "m"
provider = "p"
input = 1
output = 2.5
cached = 0
reasoning = 3
per_call = 0.01
[stop]
max_cost = 5
grace = 0
first_success = "1h"
offline_for = "2h"
max_failures = "5%"
[store]
path = "-.db"
lease = "10s"
durability = "normal"
"""


def test_every_key_arrives(write):
    """What the file says is what the config holds: durations in seconds, lists as tuples, paths absolute."""
    path = write(FULL)
    config = load(path)
    assert config.settings() == {
        "name": "labels-2",
        "input": {
            "path": "sub/in.tsv",
            "key": "{{ row.a }}-{{ row.b }}",
            "header": ["a", "b"],
            "quoting": True,
            "encoding": "utf-16",
            "sql": "select 1",
            "sheet": None,
            "on_bad": "skip",
            "dedupe": True,
            "store": None,
            "kind": None,
            "result": None,
            "format": None,
        },
        "api": {
            "preset": "http",
            "base_url": "http://127.0.0.1:8080/v1?api-version=2",
            "api_key": {"env": "KEY"},
            "headers": {"X-Team": "a"},
            "timeout": 120.0,
            "connect_timeout": 0.5,
            "proxy": "http://127.0.0.1:3128",
            "ca_file": "ca.pem",
            "client_cert": "me.pem",
            "client_key": "me.key",
            "mock": {
                "latency": 0.0,
                "rate_limited": 0.1,
                "errors": 0.2,
                "resets": 0.01,
                "retry_after": 0.05,
                "seed": 7,
            },
        },
        "request": {
            "method": "PUT",
            "path": "/items/{{ row.a }}",
            "params": {"lang": ["de", {"env": "LANG"}], "n": 1},
            "headers": {"Idempotency-Key": "{{ call.key }}", "Authorization": "Bearer {{ row.b }}"},
            "body": [1, 2.5, {"file": "x.md"}],
            "attachments": "images",
            "max_attachment": 1_500_000,
        },
        "handler": None,
        "group": {"size": 100, "characters": 5000},
        "response": {
            "extract": "a[0].b",
            "parse": "text",
            "schema": {"type": "object"},
            "answer": ["404", "4xx"],
            "assert": ["a == 'b'"],
            "retry": {
                "empty": 1,
                "not_json": 1,
                "schema": 3,
                "assertion": 1,
                "extract_failed": 1,
                "error_reply": 1,
                "filtered": 1,
            },
            "on_truncated": {"max_tokens": 7},
        },
        "output": {
            "path": "/tmp/out.data",
            "format": "jsonl",
            "table": None,
            "keep": None,
            "overwrite": False,
            "flatten": False,
            "order": "input",
            "columns": {"x": "a.b", "column with spaces": "@"},
        },
        "pace": {
            "concurrency": 1,
            "processes": 2,
            "adaptive": False,
            "requests": ["30/10s", "9000/day"],
            "tokens": {"input": "1000/s"},
            "loop": "uvloop",
        },
        "retry": {"attempts": 1, "backoff": {"first": 0.05, "max": 300.0}, "max_wait": 900.0},
        "price": {
            "from": "genai-prices",
            "model": "m",
            "provider": "p",
            "input": 1.0,
            "output": 2.5,
            "cached": 0.0,
            "reasoning": 3.0,
            "per_call": 0.01,
        },
        "stop": {
            "max_cost": 5.0,
            "grace": 0.0,
            "first_success": 3600.0,
            "offline_for": 7200.0,
            "max_failures": "5%",
        },
        "store": {"path": "-.db", "lease": 10.0, "durability": "normal"},
    }
    assert config.pace.requests == (Rate(30, 10), Rate(9000, 86400))
    assert config.input.header == ("a", "b")
    assert config.input_path == path.parent / "sub/in.tsv"
    assert config.output_path == Path("/tmp/out.data")
    assert config.store_location.path == path.parent / "-.db"
    assert config.output_format == "jsonl"


def test_the_settings_are_json(write):
    """The settings of a run can be stored and read back unchanged."""
    settings = load(write(FULL)).settings()
    assert json.loads(json.dumps(settings, allow_nan=False)) == settings


def test_paths_belong_to_the_config_file_and_a_dash_to_none(write, monkeypatch):
    """Relative paths do not hang on the current folder, ``-`` stays ``-``, and no output is None."""
    path = write(MINIMAL.replace("rows.csv", "-"))
    monkeypatch.chdir("/")
    config = load(path, overrides={"output.path": "-"})
    assert (config.input_path, config.output_path, config.output_format) == (Path("-"), Path("-"), "csv")
    assert load(path).output_path is None
    monkeypatch.chdir(path.parent)
    relative = load(Path("config.toml"), overrides={"input.path": "~/a.csv", "output.path": "b.NDJSON"})
    assert relative.folder == path.parent
    assert relative.input_path == Path.home() / "a.csv"
    assert relative.output_format == "jsonl"


@pytest.mark.parametrize(
    ("text", "overrides", "expected"),
    [
        (MINIMAL, {}, (None, "/chat/completions", "POST")),
        (
            MINIMAL.replace("mock", "openai"),
            {},
            ("https://api.openai.com/v1", "/chat/completions", "POST"),
        ),
        (
            MINIMAL.replace("mock", "openai"),
            {"api.base_url": "http://localhost:1/v1", "request.path": "/x"},
            ("http://localhost:1/v1", "/x", "POST"),
        ),
        (REST, {}, ("https://api.example.com", "", "GET")),
        (REST, {"request.body": {"a": 1}}, ("https://api.example.com", "", "POST")),
        (REST, {"request.method": "DELETE"}, ("https://api.example.com", "", "DELETE")),
    ],
)
def test_a_preset_says_where_calls_go(write, text, overrides, expected):
    """URL, path and method have the preset's defaults, and the config's own where it says them."""
    config = load(write(text), overrides=overrides)
    assert (config.api.base_url, config.request.path, config.request.method) == expected


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/reviews/config.toml", "reviews"),
        ("/a/reviews/nightly.toml", "nightly"),
        ("/a/my job (2)/config.toml", "my-job-2"),
        ("/a/Prüfung/config.toml", "Prüfung"),
        ("/config.toml", "rows"),
        ("/a/.hidden/config.toml", "hidden"),
        ("/a/" + "x" * 200 + "/config.toml", "x" * 100),
    ],
)
def test_a_job_without_a_name_has_that_of_its_file_or_folder(path, name):
    """The config's own name, or its folder's for a plain config.toml, in letters that a name may have."""
    assert default_name(Path(path)) == name


def test_the_store_has_the_name_of_the_job(write):
    """Without a path of its own the store stands beside the config under the job's name."""
    path = write(MINIMAL, "nightly.toml")
    assert load(path).store_location.path == path.parent / "nightly.db"
    assert load(path, overrides={"name": "x"}).store_location.path == path.parent / "x.db"


def test_overrides_go_before_the_file_and_the_file_before_defaults(write):
    """A setting comes from the flag, else from the file, else from the default."""
    path = write(MINIMAL + "[pace]\nconcurrency = 5\n[retry]\nattempts = 9\n")
    config = load(path, overrides={"pace.concurrency": 8, "pace.requests": "10/s", "retry.backoff.first": "2s"})
    assert (config.pace.concurrency, config.pace.requests) == (8, (Rate(10, 1),))
    assert (config.retry.attempts, config.retry.backoff.first, config.retry.backoff.max) == (9, 2.0, 60.0)
    assert load(path).pace.concurrency == 5


BROKEN = '''\
nme = "x"
concurrency = 3
[input]
path = 5
header = []
quoting = "yes"
encoding = "utf-99"
[api]
preset = "opnai"
api_key = "sk-hidden"
timeout = "soon"
headers = { Authorization = "Bearer hidden", X = 3, x-api-key = "hidden" }
base_url = "https://user:hidden@example.com"
[api.mock]
errors = "120%"
sed = 3
[request]
method = "get"
params = { a = [1, { b = 2 }], c = 2020-01-01 }
[request.headers]
Cookie = "hidden"
[request.body]
text = """
[pace]
concurrency = "no, this is text"
"""
list = [ 1,
  inf, { time = 07:00:00, big = 1 },
]
[request.body.deep]
big = 99999999999999999999
[response]
answer = [404, "4xx",
  # "in between"
  "abc", 600]
extract = "a.[b"
schema = "answer.json"
retry = { schema = -1 }
[output]
columns = { a = "[[", b = "@" }
path = "out.txt"
[pace]
concurency = 3
concurrency = 0
requests = 500
[retry]
attempts = 1.5
backoff = { first = "5m" }
[stop]
grace = -1
[stor]
path = "x"
[store]
durability = true
lease = 0
'''


def test_all_faults_are_told_at_once_with_their_lines(faults):
    """One look at the message is enough to mend the whole file, from its top to its end."""
    found = faults(BROKEN)
    assert [(line, what) for line, what, _ in found] == [
        ("1", '"nme" is not a setting outside of tables'),
        ("2", '"concurrency" is not a setting outside of tables'),
        ("4", "input.path must be text in quotes, not 5"),
        ("5", "input.header must not be empty"),
        ("6", 'input.quoting must be true or false, not "yes"'),
        ("7", 'input.encoding must be an encoding such as "utf-8", "latin-1" or "utf-16", not "utf-99"'),
        (
            "9",
            (
                'api.preset must be "openai", "anthropic", "gemini", "openrouter", "ollama", "vllm", "openai-batch", '
                '"http" or "mock", not "opnai"'
            ),
        ),
        ("10", "api.api_key must not be written in the file: anybody who can read the file could read the key"),
        ("11", 'api.timeout must be a duration, such as "90s", "50ms", "5m" or "2h", not "soon"'),
        (
            "12",
            "api.headers.Authorization must not be written in the file: anybody who can read the file could read it",
        ),
        ("12", "api.headers.X must be text in quotes or a reference"),
        ("12", "api.headers.x-api-key must not be written in the file: anybody who can read the file could read it"),
        ("13", "api.base_url must not contain a user name or password; send them in a header, as { env = ... }"),
        ("15", 'api.mock.errors must be a share, such as "0.3%", from "0%" to "100%", not "120%"'),
        ("16", '"sed" is not a setting of [api.mock]'),
        ("18", 'request.method must be "GET", "POST", "PUT", "PATCH" or "DELETE", not "get"'),
        ("19", "request.params.a must be text, a number, true, false, a reference, or a list of these"),
        ("19", "request.params.c is a date or time, which JSON does not have"),
        ("21", "request.headers.Cookie must not be written in the file: anybody who can read the file could read it"),
        ("28", "request.body.list[1] is a number that JSON does not have: inf"),
        ("28", "request.body.list[2].time is a date or time, which JSON does not have"),
        ("31", "request.body.deep.big is a number that JSON does not have: 99999999999999999999"),
        ("35", 'response.answer[2] must be a status such as "404" or "4xx", not "abc"'),
        ("35", 'response.answer[3] must be a status such as "404" or "4xx", not 600'),
        ("36", 'response.extract must be JMESPath, not "a.[b": Incomplete expression'),
        ("37", 'response.schema must be a table, not "answer.json"'),
        ("38", "response.retry.schema must be 0 or more, not -1"),
        ("40", 'output.columns.a must be JMESPath, not "[[": Incomplete expression'),
        ("41", 'output.path "out.txt" does not say which format to write'),
        ("43", '"concurency" is not a setting of [pace]'),
        ("44", "pace.concurrency must be 1 or more, not 0"),
        ("45", 'pace.requests must be a rate above 0, such as "500/min", "10/s" or "200k/day", not 500'),
        ("47", "retry.attempts must be a whole number, not 1.5"),
        ("48", "retry.backoff must not begin with a longer wait than its max"),
        ("50", 'stop.grace must be a duration, such as "90s", "50ms", "5m" or "2h", not -1'),
        ("51", "[stor] is not a table of the config"),
        ("54", 'store.durability must be "full" or "normal", not true'),
        ("55", "store.lease must be more than 0, not 0"),
    ]
    assert "hidden" not in repr(found)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("group.size", 3000, "must be 2048 or less"),
        ("group.size", 0, "must be 1 or more"),
        ("group.characters", 0, "must be 1 or more"),
        ("pace.concurrency", 0, "must be 1 or more"),
        ("retry.attempts", 0, "must be 1 or more"),
        ("retry.max_wait", 0, "must be more than 0"),
        ("retry.backoff.first", 0, "must be more than 0"),
        ("retry.backoff.max", 0, "must be more than 0"),
        ("response.retry.empty", -1, "must be 0 or more"),
        ("response.on_truncated.max_tokens", 0, "must be 1 or more"),
        ("stop.max_cost", 0.0, "must be more than 0"),
        ("stop.max_cost", 1e6, "must be an amount in dollars, such as 0.25"),
        ("stop.first_success", 0, "must be more than 0"),
        ("stop.offline_for", 0, "must be more than 0"),
        ("price.input", -1.0, "must be an amount in dollars, such as 0.25"),
        ("api.timeout", 0, "must be more than 0"),
        ("api.connect_timeout", 0, "must be more than 0"),
        ("api.mock.seed", 0.5, "must be a whole number"),
        ("store.lease", 0, "must be more than 0"),
        ("store.path", "", "must not be empty"),
        ("input.path", "", "must not be empty"),
        ("input.header", [], "must not be empty"),
        ("handler.columns", [], "must not be empty"),
        ("output.columns", {}, "must not be empty"),
    ],
)
def test_every_bound_is_told(faults, key, value, says):
    """A value beyond its bound is a fault of that key in words, however the config's models are bounded."""
    assert any(what.startswith(f"{key} {says}") for _, what, _ in faults(MINIMAL, **{key: value}))


def test_an_error_without_words_of_its_own_has_those_it_came_with():
    """What pydantic finds and nobody has foreseen is told as pydantic tells it."""

    class Even(BaseModel):
        number: Annotated[int, Field(multiple_of=2)]

    with pytest.raises(ValidationError) as caught:
        Even(number=3)
    assert explain(caught.value, Even) == [
        ConfigFault(("number",), "[number] is not valid: Input should be a multiple of 2, not 3")
    ]


def test_an_unknown_key_has_its_suggestion(faults):
    """What comes closest, else the table that has such a key, else everything that could stand there."""
    remedies = {what: remedy for _, what, remedy in faults(BROKEN)}
    assert remedies['"nme" is not a setting outside of tables'] == 'did you mean "name"?'
    assert remedies['"concurency" is not a setting of [pace]'] == 'did you mean "concurrency"?'
    assert remedies['"sed" is not a setting of [api.mock]'] == 'did you mean "seed"?'
    assert remedies["[stor] is not a table of the config"] == 'did you mean "store"?'
    assert remedies['"concurrency" is not a setting outside of tables'] == "it belongs in [pace]"
    [(_, _, remedy)] = faults(MINIMAL + "[retry]\nzzz = 1\n")
    assert remedy == "the settings are: attempts, backoff, max_wait"


def test_a_key_that_is_written_out_is_told_what_to_write(faults):
    """The remedy for a literal key or secret header is a reference, not the value again."""
    remedies = {what.split(" ")[0]: remedy for _, what, remedy in faults(BROKEN)}
    assert remedies["api.api_key"].startswith('api_key = { env = "NAME" }')
    assert remedies["api.headers.Authorization"].startswith('Authorization = { env = "NAME" }')


@pytest.mark.parametrize("key", ["headers", "api_key", "apikey", "api-key", "base_url"])
def test_a_secret_in_the_wrong_place_is_not_repeated(faults, key):
    """What looks like a place for a secret is never quoted, however wrong the config is."""
    found = faults(MINIMAL.replace('"mock"', f'"mock"\n{key} = "hidden-value"'))
    assert found[0][0] == "5"
    assert "hidden" not in repr(found)


@pytest.mark.parametrize("key", ['{ envv = "K" }', "5", '{ env = "A", file = "b" }', '{ env = "" }', "[]"])
def test_a_key_is_one_of_the_three_references(faults, key):
    """A table that looks like a reference and is none is refused for a key."""
    [(line, what, remedy)] = faults(MINIMAL.replace('"mock"', f'"mock"\napi_key = {key}'))
    assert (line, what) == ("5", "api.api_key must be a reference")
    assert "command" in remedy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("[input] is missing", "path ="), ("[api] is missing", "preset =")]),
        ("[input]\n[api]\n", [("input.path is missing", "records.csv"), ("api.preset is missing", '"http"')]),
        (REST.replace("base_url", "# "), [("api.base_url is missing", "base_url =")]),
        (REST.replace("http", "openai", 1), [('request.body is missing; preset = "openai" needs one', "model")]),
        (REST.replace("http", "mock", 1), [('request.body is missing; preset = "mock" needs one', "model")]),
        (REST.replace("http", "ollama", 1), [('request.body is missing; preset = "ollama" needs one', "model")]),
        (
            MINIMAL.replace("mock", "anthropic"),
            [(f"request.body.{key} is missing", "max_tokens = 1000") for key in ("max_tokens", "messages")],
        ),
        (MINIMAL.replace("mock", "gemini"), [("request.body.contents is missing", "contents = ")]),
        ("input = 3\napi = []\npace = 1\n", [(f"[{t}] must be a table", "") for t in ("input", "api", "pace")]),
    ],
)
def test_what_is_missing_is_named_with_an_example(faults, text, expected):
    """A key or table that must be there is named, and the remedy is a line to write."""
    found = faults(text)
    assert len(found) == len(expected)
    for (_, what, remedy), (said, example) in zip(found, expected, strict=True):
        assert what.startswith(said)
        assert example in remedy


def test_the_mock_without_a_body_may_be_a_lookup(write):
    """A path of its own makes a plain GET of it."""
    config = load(write(REST.replace("http", "mock", 1) + '[request]\npath = "/words/{{ row.a }}"\n'))
    assert config.request.method == "GET"


@pytest.mark.parametrize("name", ["", "a b", "-a", ".a", "a/b", "a\\u0000", "x" * 101, "a\\n"])
def test_a_name_is_fit_for_a_file(faults, name):
    """A name that could lead elsewhere or be hard to type is refused at its line."""
    [(line, what, _)] = faults(f'name = "{name}"\n' + MINIMAL)
    assert line == "1"
    assert what.startswith("name must be at most 100 letters, digits, - _ and .")


@pytest.mark.parametrize(
    "url",
    ["example.com", "ftp://example.com", "https://", "https://a b/", "https://a:99999/", "https://a/#b", "http://[::1"],
)
def test_a_base_url_is_a_url(faults, url):
    """What no request could go to is refused before any call."""
    [(_, what, _)] = faults(REST.replace("https://api.example.com", url))
    assert what == 'api.base_url must be a URL such as "https://api.example.com/v1"'


def test_faults_together_draw_at_most_everything(faults):
    """Shares of the mock's faults that exceed the whole are refused."""
    [(line, what, _)] = faults(MINIMAL + '[api.mock]\nerrors = "60%"\nresets = "60%"\n')
    assert (line, what) == ("7", "api.mock must not draw more than 100% in rate_limited, errors and resets together")


def test_a_fault_in_an_override_is_not_blamed_on_the_file(faults):
    """What a flag or a variable set is said to come from there, also where the file has the same key."""
    found = faults(MINIMAL + "[pace]\nconcurrency = 5\n", **{"pace.concurrency": 0, "pace.requets": "1/s"})
    assert [(where, what) for where, what, _ in found] == [
        ("pace.concurrency (by flag or variable)", "pace.concurrency must be 1 or more, not 0"),
        ("pace.requets (by flag or variable)", '"requets" is not a setting of [pace]'),
    ]


def test_an_override_below_what_is_no_table_leaves_the_fault_to_the_file(faults):
    """The file's own fault is told, at its line."""
    [(line, what, _)] = faults("pace = 3\n" + MINIMAL, **{"pace.concurrency": 8})
    assert (line, what) == ("1", "[pace] must be a table, not 3")


@pytest.mark.parametrize(
    ("text", "line", "said", "remedy"),
    [
        ("a = 1\nb = hello\n", "2", "is not valid TOML at column 5: Invalid value", "quotes"),
        ('a = "C:\\data"\n', "1", "Unescaped", "single quotes"),
        ("[a]\nb = 1\nb = 2\n", "3", "Cannot overwrite a value", "twice"),
        ("my key = 1\n", "1", "Expected '=' after a key", "key = value"),
        ('\n\na = "open', "3", "at the end of the file", ""),
        ("a = " + "1" * 5000, "1", "is not valid TOML", ""),
        (b"a = 1\nb = '\xe9'\n", "2", "is not UTF-8", "UTF-8"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_with_its_line(faults, text, line, said, remedy):
    """Line, column and a hint come with what tomllib says."""
    [(where, what, hint)] = faults(text)
    assert where == line
    assert said in what
    assert remedy in hint


def test_a_file_that_is_nested_too_deeply_is_refused(faults):
    """Brackets without end are a fault of the file, not of the program."""
    [(_, what, _)] = faults("a = " + "[" * 100_000)
    assert what == "is nested too deeply"


def test_a_missing_file_has_a_way_to_get_one(tmp_path):
    """The message names the file that was looked for and the command that writes one."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "config.toml")
    [problem] = caught.value.problems
    assert problem.where == str(tmp_path / "config.toml")
    assert problem.what == "does not exist"
    assert "rowcall init --demo" in problem.remedy
    with pytest.raises(ConfigError, match=r"name the file: .*config\.toml"):
        load(tmp_path)


def test_a_byte_order_mark_and_windows_line_ends_are_fine(write):
    """A config saved by a Windows editor loads, and its faults have the right lines."""
    text = MINIMAL.replace("\n", "\r\n").encode("utf-8-sig")
    assert load(write(text)).name
    with pytest.raises(ConfigError, match=r"config\.toml:8: .* is not a setting"):
        load(write(text + b"[pace]\r\nx = 1\r\n"))


def test_a_config_cannot_be_changed(write):
    """Nobody alters the settings of a run under way."""
    config = load(write(MINIMAL))
    with pytest.raises(ValueError, match="frozen"):
        config.pace.concurrency = 9


def paths(settings, path=""):
    """Every key of the settings, as an override calls it."""
    for name, value in settings.items():
        yield path + name
        if isinstance(value, dict) and name not in ("headers", "params", "body", "columns", "schema", "api_key"):
            yield from paths(value, f"{path}{name}.")


SETTINGS = sorted(paths(tomllib.loads(FULL)))
values = st.recursive(
    st.one_of(
        st.text(max_size=5),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.dates(),
        st.sampled_from([10**400, "-", "@", "1s"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["env", "file", "x", ""]), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.sampled_from(SETTINGS), values, max_size=4))
def test_any_value_anywhere_is_taken_or_refused_in_plain_words(tmp_path_factory, wrong):
    """Whatever stands behind a key, the end is a config or a message; no traceback, no jargon."""
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_text(MINIMAL)
    try:
        config = load(path, overrides=copy.deepcopy(wrong))
    except ConfigError as error:
        for problem in error.problems:
            assert "Input should" not in problem.what
            assert "\n" not in problem.what
    else:
        assert isinstance(config, Config)
        config.settings()


def test_reading_a_config_needs_no_slow_import():
    """The config room brings neither the wire nor templates nor tables of JMESPath with it."""
    code = "import sys, rowcall.config; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert not loaded & {"httpx", "aiohttp", "jinja2", "jmespath", "rich", "tenacity", "aiosqlite", "fastjsonschema"}


HANDLER = """
[input]
path = "in.csv"
[api]
preset = "http"
[handler]
path = "tasks.py:label"
"""


def test_a_handler_needs_no_request(write):
    """With a handler neither a body nor a base URL is missing, whatever the preset."""
    config = load(write(HANDLER))
    assert (config.handler.path, config.handler.version, config.handler.columns) == ("tasks.py:label", "1", None)
    assert load(write(HANDLER.replace("http", "openai"))).api.base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "beside", ['[request]\nmethod = "GET"', '[response]\nextract = "a"', "[response]\nschema = {}"]
)
def test_a_handler_beside_a_request_is_refused(write, beside):
    """What a handler does by itself cannot stand beside it; the message names the line."""
    with pytest.raises(ConfigError, match=r"config\.toml:\d+: .* has no effect with \[handler\]"):
        load(write(HANDLER + beside))


@pytest.mark.parametrize("path", ["tasks.py", "tasks:label", "tasks.py:", "tasks.py:a b", ":label"])
def test_a_handler_path_names_a_file_and_a_function(write, path):
    """Anything but a file and a function in it is an error with its line."""
    with pytest.raises(ConfigError, match=r"config\.toml:7: handler\.path must be a file and a function"):
        load(write(HANDLER.replace("tasks.py:label", path)))


def test_a_mistyped_key_of_the_handler_is_known_again(write):
    """A key of [handler] that is almost right is suggested."""
    with pytest.raises(ConfigError, match='did you mean "columns"'):
        load(write(HANDLER + 'colums = ["a"]'))


def test_the_fingerprint_of_a_handler_is_its_path_and_version(write):
    """Another version is another request; another base URL is not."""
    plain = load(write(HANDLER)).fingerprint()
    assert load(write(HANDLER.replace('"http"', '"http"\nbase_url = "https://x.test"'))).fingerprint() == plain
    assert load(write(HANDLER + 'version = "2"')).fingerprint() != plain
