"""The http provider: the bytes of a request, and how a reply is read."""

import asyncio
import json
from pathlib import Path

import pytest
from providerkit import make_provider

from rowcall.client import Client
from rowcall.config import Secret
from rowcall.model import json_values
from rowcall.model.errors import ConfigError, TemplateError
from rowcall.model.outcome import Failure, FailureClass, Reply, Success
from rowcall.providers import CallContext

HOSTILE = json.loads((Path(__file__).parent.parent / "data/strings/blns.json").read_text())
CALL = CallContext("key-1")
JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html; charset=utf-8"}
PAGE = b"<!doctype html><title>Log in</title>"


def provider(**keys):
    return make_provider("http", **{"base_url": "https://api.example.com/v1", **keys})


def built(row=None, **keys):
    return provider(**keys).build(row or {}, CALL)


def reply(body, status=200, headers=JSON):
    return Reply(status, headers, body if isinstance(body, bytes) else json_values.dumps(body), 0.25)


def read(body, status=200, headers=JSON, **keys):
    return provider(**keys).read(reply(body, status, headers))


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://h/v1", "/users", "https://h/v1/users"),
        ("https://h/v1/", "/users", "https://h/v1/users"),
        ("https://h/v1/", "users/", "https://h/v1/users/"),
        ("https://h", "", "https://h"),
        ("https://h/v1/", "", "https://h/v1/"),
        ("https://h/v1?api-version=2", "/users", "https://h/v1/users?api-version=2"),
        ("https://h/v1?a=1", "/users?b=2", "https://h/v1/users?a=1&b=2"),
        ("https://h/v1#part", "/users", "https://h/v1/users"),
        ("http://h:8080", "/a b/é", "http://h:8080/a%20b/%C3%A9"),
    ],
)
def test_url(base, path, url):
    """base_url and path are joined with one slash, and queries of both are kept."""
    assert str(built(base_url=base, path=path).url) == url


@pytest.mark.parametrize(
    ("value", "path"),
    [("7", "/users/7"), ("a/b?c#d", "/users/a%2Fb%3Fc%23d"), ("a b%é", "/users/a%20b%25%C3%A9"), (7, "/users/7")],
)
def test_value_in_a_path(value, path):
    """A value in a path is percent-encoded: it cannot leave its place."""
    request = built({"id": value}, base_url="https://h", path="/users/{{ row.id }}")
    assert request.url.raw_path.decode() == path


@pytest.mark.parametrize("value", ["", None, ".", ".."])
def test_value_that_would_change_the_path(value):
    """An empty value or dots would call another path, so the record is refused."""
    with pytest.raises(TemplateError, match=r"request\.path"):
        built({"id": value}, path="/users/{{ row.id }}")


def test_params():
    """Query values are encoded, lists repeat the name, null leaves it out, an empty text stays."""
    params = {
        "q": "{{ row.q }}",
        "tag": ["a", "{{ row.n }}"],
        "none": None,
        "gone": "{{ row.none }}",
        "on": True,
        "e": "",
    }
    request = built({"q": "a&b=ü +", "n": json_values.loads("1e5"), "none": None}, params=params)
    assert request.url.query == b"q=a%26b%3D%C3%BC%20%2B&tag=a&tag=1e5&on=true&e="


@pytest.mark.parametrize(
    ("body", "method", "given_", "content", "content_type"),
    [
        (None, "GET", None, b"", None),
        ({"a": [1, None, "é"]}, "POST", None, '{"a":[1,null,"é"]}'.encode(), "application/json"),
        (["{{ row.x }}"], "PUT", "put", b"[1e5]", "application/json"),
        ("{{ row.t }}", "POST", None, b"text", "text/plain; charset=utf-8"),
        ("{{ row.d }}", "POST", None, b'{"k":1}', "application/json"),
        ("plain é", "POST", None, "plain é".encode(), "text/plain; charset=utf-8"),
    ],
)
def test_method_and_body(body, method, given_, content, content_type):
    """A body makes a POST unless the config says otherwise; JSON keeps numbers as written; none makes a GET."""
    row = {"x": json_values.loads("1e5"), "t": "text", "d": {"k": 1}}
    request = built(row, body=body, method=given_)
    assert (request.method, request.content) == (method, content)
    assert request.headers.get("content-type") == content_type


def test_headers():
    """Request headers win over those of the API whatever their case; null leaves one out; call.key is known."""
    request = built(
        {"id": 7},
        api_key=Secret("KEY", "sk-1"),
        headers={"X-Team": "a", "X-Old": "x", "X-Count": 3},
        request_headers={"x-team": "b-{{ row.id }}", "X-Old": None, "Idempotency-Key": "{{ call.key }}"},
        body={"a": 1},
    )
    got = dict(request.headers)
    assert got == {
        "host": "api.example.com",
        "authorization": "Bearer sk-1",
        "x-count": "3",
        "x-team": "b-7",
        "idempotency-key": "key-1",
        "content-type": "application/json",
        "content-length": "7",
    }


def test_own_headers_win():
    """A Content-Type or Authorization of the config replaces the usual one."""
    headers = {"Content-Type": "application/vnd.x+json", "authorization": Secret("KEY", "Basic abc")}
    request = built(api_key="sk-1", headers=headers, body={})
    assert request.headers.get_list("content-type") == ["application/vnd.x+json"]
    assert request.headers.get_list("authorization") == ["Basic abc"]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
def test_header_from_data_with_a_line_break(value):
    """A value cannot add a header; the message does not show it."""
    with pytest.raises(TemplateError, match=r"request\.headers\.X-Id: the value contains a line break") as caught:
        built({"x": value}, request_headers={"X-Id": "{{ row.x }}"})
    assert "Evil" not in str(caught.value)


def test_body_that_is_no_json():
    """A value that JSON does not have fails the record with the place."""
    with pytest.raises(TemplateError, match=r"request\.body"):
        built({}, body={"x": float("nan")})
    with pytest.raises(TemplateError, match=r"request\.body"):
        built({}, body={"x": object()})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_string_through_a_body(text):
    """A hostile string reaches the API as it is, in a JSON body, inside a sentence, and in a query."""
    body = {"alone": "{{ row.x }}", "inside": "say {{ row.x }}!"}
    request = built({"x": text}, body=body, params={"q": "{{ row.x }}"})
    assert json.loads(request.content) == {"alone": text, "inside": f"say {text}!"}
    assert request.url.params["q"] == text


def test_secrets_are_sent_and_never_shown():
    """Secrets reach headers, query and body, and stand in no repr and no message, not even if the API echoes them."""
    made = provider(
        api_key=Secret("KEY", "hush-key"),
        headers={"X-Token": Secret("KEY", "hush-token")},
        params={"key": Secret("KEY", "hush-param")},
        body={"account": [Secret("KEY", "hush-body")]},
    )
    request = made.build({}, CALL)
    assert request.headers["authorization"] == "Bearer hush-key"
    assert request.headers["x-token"] == "hush-token"
    assert request.url.params["key"] == "hush-param"
    assert request.content == b'{"account":["hush-body"]}'
    echo = {"error": {"message": "bad hush-key hush-token hush-param hush-body"}}
    shown = f"{made!r} {vars(made)!r} {made.trees!r} {made.read(reply(echo, 401))!r}"
    assert made.read(reply(echo, 401)).message == "HTTP 401: bad *** *** *** ***"
    assert "hush" not in shown.replace(repr(made._secrets), "")


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("api.example.com", "needs http:// or https://"),
        ("ftp://h/", "needs http:// or https://"),
        ("https://", "needs http:// or https://"),
        ("https://me:hush@h/?key=hush", "user name or password"),
        ("https://me:hush@h:port/", "not a URL"),
        ("https://h:port/?key=hush", "not a URL"),
        (None, "missing"),
    ],
)
def test_base_url_that_cannot_be(url, what):
    """A base_url that cannot be used is refused with its place, without its query or password."""
    with pytest.raises(ConfigError, match=what) as caught:
        provider(base_url=url)
    assert "api.base_url" in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "target"),
    [
        ("https://API.example.com/v1?x=1", "https://api.example.com"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"),
        ("https://h:443/", "https://h"),
    ],
)
def test_target(base, target):
    """Limits and outages belong to scheme, host and port."""
    assert provider(base_url=base).target == target


def test_columns_of_all_parts():
    """The used columns are those of path, query, headers and body together."""
    keys = {"path": "/{{ row.a }}", "params": {"x": "{{ row.b }}"}, "body": {"x": "{{ row.d }}"}}
    made = provider(**keys, headers={"X": "{{ row.c }}"}, request_headers={"Y": "{{ call.key }}{{ row.e }}"})
    assert made.columns == {"a", "b", "c", "d", "e"}
    assert provider(body="{{ row | tojson }}").columns is None
    assert provider().columns == frozenset()


@pytest.mark.parametrize(
    ("extract", "document", "value"),
    [
        (None, {"a": 1}, {"a": 1}),
        (None, [], []),
        (None, "text", "text"),
        ("a.b", {"a": {"b": 0}}, 0),
        ("a.b", {"a": {"b": False}}, False),
        ("a.b", {"a": {"b": ""}}, ""),
        ("a[1].b", {"a": [{}, {"b": [1]}]}, [1]),
        ("a[0][1]", {"a": [[1, 2]]}, 2),
        ("@", {"a": 1}, {"a": 1}),
        ("a[?b > `1`].b | [0]", {"a": [{"b": 1}, {"b": 2}]}, 2),
        ('"a b"', {"a b": 1}, 1),
        ("{x: a.b, y: c}", {"a": {"b": 1}, "c": None}, {"x": 1, "y": None}),
        ("a[-1]", {"a": [1, 2]}, 2),
    ],
)
def test_extract(extract, document, value):
    """What the path finds is the answer; false, 0 and an empty text are answers too."""
    assert read(document, extract=extract) == Success(value, 200, None, 0.25)


@pytest.mark.parametrize("extract", ["a.b", "a[0].b", "a.b.c[2]", "length(a) && `null`", "x[0][0]"])
@pytest.mark.parametrize("document", [{"a": None}, {"a": []}, {"a": "text"}, {}, [], None, "text", 7, {"x": [{}]}])
def test_extract_finds_nothing(extract, document):
    """Nothing at the path is the failure empty (or the path cannot be applied), whatever the document is."""
    failure = read(document, extract=extract)
    assert failure.cls is FailureClass.ANSWER
    assert failure.reason in ("empty", "extract_failed")
    assert "\n" not in failure.message


def test_numbers_of_a_reply_keep_their_text():
    """Numbers come out of a reply as they were written."""
    answer = read(b'{"id": 9007199254740993, "x": 1e5, "y": 1.0}').value
    assert json_values.dumps(answer) == b'{"id":9007199254740993,"x":1e5,"y":1.0}'


@pytest.mark.parametrize(
    ("body", "headers", "keys", "expected"),
    [
        (b"", {}, {}, Success(None, 200, None, 0.25)),
        (b"plain", {"content-type": "text/plain"}, {}, Success("plain", 200, None, 0.25)),
        (b"caf\xe9", {"content-type": "text/plain; charset=latin-1"}, {}, Success("café", 200, None, 0.25)),
        (b"caf\xe9", {"content-type": "text/plain; charset=none"}, {}, Success("caf\ufffd", 200, None, 0.25)),
        (b"```json\n[1]\n```", {}, {"parse": "json"}, Success([1], 200, None, 0.25)),
        (b'\xef\xbb\xbf{"a": 1}', {}, {"extract": "a"}, Success(1, 200, None, 0.25)),
        (b'{"a": 1}', HTML, {"extract": "a"}, Success(1, 200, None, 0.25)),
        (b"plain", {}, {"extract": "a"}, "not_json"),
        (b"", {}, {"extract": "a"}, "not_json"),
        (b'{"a": NaN}', JSON, {"extract": "a"}, "not_json"),
        (b'{"a": ', JSON, {"extract": "a"}, "not_json"),
        (b'{"a": ', {"content-type": "application/problem+json; x=y"}, {}, "not_json"),
        (b"", JSON, {}, Success(None, 200, None, 0.25)),
        (b'{"a": "\xff"}', JSON, {"extract": "a"}, "not_json"),
        (b"plain", {}, {"parse": "json"}, "not_json"),
        (PAGE, HTML, {"parse": "text"}, Success(PAGE.decode(), 200, None, 0.25)),
        (b'{"a": 1}', JSON, {"parse": "text"}, Success('{"a": 1}', 200, None, 0.25)),
        (b"", {}, {"parse": "text"}, Success("", 200, None, 0.25)),
        (b'{"a": "1"}', JSON, {"parse": "text", "extract": "a"}, Success("1", 200, None, 0.25)),
        (PAGE, HTML, {}, "html_reply"),
        (PAGE, {}, {}, "html_reply"),
        (PAGE, HTML, {"extract": "a"}, "html_reply"),
        (b"<p>hi</p>", HTML, {"extract": "a"}, "html_reply"),
    ],
)
def test_reply_that_is_no_json(body, headers, keys, expected):
    """Text is an answer where nothing is looked for inside; a web page never is; broken JSON is no text."""
    outcome = read(body, headers=headers, **keys)
    assert outcome == expected if isinstance(expected, Success) else outcome.reason == expected


def test_web_page_may_have_been_sent():
    """A web page of 200 does not prove that the API never saw the request."""
    assert read(PAGE, headers=HTML).cls is FailureClass.MAYBE_SENT


@pytest.mark.parametrize(
    ("answer", "status", "ok"),
    [
        (["404"], 404, True),
        ([404], 404, True),
        (["4xx"], 422, True),
        (["5XX"], 503, True),
        (["404"], 410, False),
        (["4xx"], 503, False),
        ([], 404, False),
    ],
)
def test_answer_statuses(answer, status, ok):
    """A status in the list is an answer without a value; all others are failures."""
    outcome = read({"error": "none"}, status, answer=answer, extract="a")
    assert isinstance(outcome, Success) is ok
    if ok:
        assert (outcome.value, outcome.status) == (None, status)


@pytest.mark.parametrize("answer", ["", "x", "4", "4x4", "099", "4044", "²xx", "4²2"])
def test_answer_that_is_no_status(answer):
    """What is no status is refused."""
    with pytest.raises(ConfigError, match=r"response\.answer"):
        provider(answer=[answer])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (' \n{"a": 1}\n', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('```JSON\r\n{"a": 1}\r\n```  ', {"a": 1}),
        ('Here it is:\n\n```json\n{"a": 1}\n```\nEnjoy!', {"a": 1}),
        ('```json\n{"a": "```\\n"}\n```', {"a": "```\n"}),
        ("7", 7),
        ("null", None),
        ('"text"', "text"),
    ],
)
def test_parse(text, value):
    """JSON in a text is read as it stands, in a fence, or in the one fenced block of some prose."""
    outcome = read({"t": text}, extract="t", parse="json")
    assert outcome.value == value if value is not None else outcome.reason == "empty"


@pytest.mark.parametrize(
    "text",
    [
        "no",
        'Sure: {"a": 1}',
        "```json\n{'a': 1}\n```",
        "```json\n1\n```\nor\n```json\n2\n```",
        '{"a": NaN}',
        '{"a": 1} extra',
        '["\\ud800"]',
        "[" * 100_000,
    ],
)
def test_parse_of_what_is_no_json(text):
    """Prose, two blocks, NaN or a cut text is the failure not_json, which may be tried again."""
    failure = read({"t": text}, extract="t", parse="json")
    assert (failure.cls, failure.reason, failure.retry) == (FailureClass.ANSWER, "not_json", True)


def test_parse_leaves_what_is_parsed():
    """Where the path finds JSON that is no text, parse has nothing to do."""
    assert read({"t": {"a": 1}}, extract="t", parse="json").value == {"a": 1}


SCHEMA = {
    "type": "object",
    "required": ["label", "scores"],
    "properties": {
        "label": {"enum": ["good", "bad"]},
        "scores": {"type": "array", "items": {"type": "integer", "default": 5}},
        "note": {"type": "string", "default": "filled"},
    },
}


def test_schema_holds():
    """An answer that follows the schema stays as it is: no defaults are filled in."""
    answer = {"label": "good", "scores": [1]}
    assert read(answer, schema=SCHEMA).value == answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"label": "fine", "scores": []}, ["answer.label", '"fine"']),
        ({"label": "bad", "scores": [1, "x"]}, ["answer.scores[1]", '"x"']),
        ({"label": "bad"}, ["scores"]),
        (["no"], ["object", '["no"]']),
        (7, ["object"]),
    ],
)
def test_schema_is_broken(answer, words):
    """An answer that does not follow the schema is named by its path and its value."""
    failure = read(answer, schema=SCHEMA)
    assert (failure.cls, failure.reason) == (FailureClass.ANSWER, "schema")
    assert all(word in failure.message for word in words)


def test_schema_makes_json_of_text():
    """With a schema the text that is found is JSON, unless the config says that it is text."""
    assert read({"t": '{"a": 1}'}, extract="t", schema={"type": "object"}).value == {"a": 1}
    assert read({"t": "7"}, extract="t", schema={"type": "string"}, parse="text").value == "7"


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"$ref": "https://127.0.0.1:1/x.json"}, {"$ref": "file:///etc/passwd"}, {"pattern": "("}],
)
def test_schema_that_is_none(schema):
    """A broken schema, or one that refers to the web, is refused at the start."""
    with pytest.raises(ConfigError, match=r"response\.schema"):
        provider(schema=schema)


def test_schema_reads_no_file(tmp_path):
    """A schema cannot bring in another file, even a good one."""
    (tmp_path / "other.json").write_text('{"type": "object"}')
    with pytest.raises(ConfigError, match=r"response\.schema"):
        provider(schema={"$ref": f"file://{tmp_path}/other.json"})


def test_path_that_is_none():
    """A path that is not a JMESPath is refused at the start."""
    with pytest.raises(ConfigError, match=r"response\.extract: 'a\[' is not a JMESPath"):
        provider(extract="a[")


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_deep_reply(depth):
    """A reply too deep to be kept is a failure, not a crash."""
    for keys in ({}, {"extract": "@"}, {"extract": "a", "schema": {}}):
        outcome = read(b'{"a":' * depth + b"1" + b"}" * depth, **keys)
        assert isinstance(outcome, Failure)
        assert outcome.reason == "not_json"


def test_reply_at_the_edge_of_the_stack():
    """At no depth does a reply overflow the stack, neither as an answer nor as an error."""
    made = provider(extract="a")
    for depth in range(800, 1000):
        body = b'{"a":' * depth + b'"\\u0041"' + b"}" * depth
        assert isinstance(made.read(reply(body)), Failure)
        assert isinstance(made.read(reply(body, 500)), Failure)


async def test_bytes_on_the_wire():
    """What goes out over a real socket is the request that was built, once, and its reply is read."""
    seen = bytearray()

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        seen.extend(head + await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])))
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: application/json\r\n\r\n{"a": "b\\n"} ')
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    made = provider(
        base_url=f"http://127.0.0.1:{port}/v1/",
        api_key=Secret("KEY", "sk-1"),
        path="/users/{{ row.id }}",
        params={"q": "{{ row.q }}"},
        request_headers={"Idempotency-Key": "{{ call.key }}"},
        body={"text": "{{ row.q }}"},
        extract="a",
    )
    async with server, Client(concurrency=1) as client:
        outcome = made.read(await client.exchange(made.build({"id": "a/b", "q": "é & {{ x }}"}, CALL)))
    head, _, body = bytes(seen).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /v1/users/a%2Fb?q=%C3%A9%20%26%20%7B%7B%20x%20%7D%7D HTTP/1.1"
    sent = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    assert sent["host"] == f"127.0.0.1:{port}"
    assert sent["authorization"] == "Bearer sk-1"
    assert sent["idempotency-key"] == "key-1"
    assert sent["content-type"] == "application/json"
    assert body == '{"text":"é & {{ x }}"}'.encode()
    assert outcome.value == "b\n"


def test_preset_that_is_none():
    """An unknown preset is refused with a suggestion."""
    with pytest.raises(ConfigError, match="Did you mean 'openai'"):
        make_provider("opnai")
    with pytest.raises(ConfigError, match=r"The presets are: openai, anthropic, .*, http, mock"):
        make_provider("zzz")
