"""Templates: data verbatim, types kept, names known, and what a request uses."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.model import json_values
from rowcall.model.errors import TemplateError
from rowcall.sources.keys import input_hash, request_hash
from rowcall.templates.check_columns import check_columns, union
from rowcall.templates.compile import compile_tree
from rowcall.templates.values import text_of

HOSTILE = json.loads((Path(__file__).parent.parent / "data/strings/blns.json").read_text())

ROW = {
    "text": "fine",
    "items": "three",
    "keys": ["k"],
    "a b": "spaced",
    "none": None,
    "yes": True,
    "no": False,
    "number": 7,
    "wide": json_values.loads("1e5"),
    "list": ["a", None],
    "table": {"x": None, "items": 1},
}


def rendered(source, row=ROW, **options):
    return compile_tree(source, where="request.body", **options).render(row)


def plain_json():
    numbers = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    text = st.text(st.characters(exclude_categories=["Cs"]))
    leaves = st.none() | st.booleans() | numbers | text
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=8)


@given(plain_json())
@settings(deadline=None, max_examples=100)
def test_type_of_single_expression(value):
    """A string that is one expression keeps the type and content of its value."""
    kept = rendered("{{ row.x }}", {"x": value})
    assert kept == value
    assert type(kept) is type(value)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_string_alone_and_inside_text(text):
    """A hostile string goes in as it is, alone and between other text, and is never evaluated again."""
    row = {"x": text}
    assert rendered("{{ row.x }}", row) == text
    assert rendered("say {{ row.x }}!", row) == f"say {text}!"
    assert rendered("{{ row['x'] ~ '' }}", row) == text


@pytest.mark.parametrize(
    "text", ["{{ row.secret }}", "{% raw %}", "{# gone #}", "{{ ''.__class__ }}", "{0.__class__}", "%s"]
)
def test_data_is_no_template(text):
    """Data that looks like a template stays text."""
    assert rendered("{{ row.x }} {{ row.x | trim }}", {"x": text, "secret": "s"}) == f"{text} {text}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ row.items }}", "three"),
        ("{{ row.keys }}", ["k"]),
        ('{{ row["a b"] }}', "spaced"),
        ("{{ row.table.items }}", 1),
        ("{{ row.list.0 }}", "a"),
        ("{{ row.number + 1 }}", 8),
        ("{{ row.number }}", 7),
        ("{{ row.yes }}", True),
        ("{{ row.none }}", None),
        ("{{ row.list | map('upper') }}", ["A", ""]),
        ("{{ row.text[:2] }}", "fi"),
        ("{{ row.missing | default('d') }}", "d"),
        ("{{ '<b>' | escape }}", "&lt;b&gt;"),
        ("{{- row.number -}}", 7),
    ],
)
def test_expression(source, expected):
    """Keys come before methods, and an expression gives its value."""
    got = rendered(source)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[{{ row.none }}]", "[]"),
        ("[{{ row.yes }}{{ row.no }}]", "[truefalse]"),
        ("[{{ row.wide }}]", "[1e5]"),
        ("[{{ row.list }}]", '[["a",null]]'),
        ("[{{ row.table }}]", '[{"x":null,"items":1}]'),
        ("[{{ row.none | trim }}{{ row.none | upper }}{{ row.none | string }}]", "[]"),
        ("[{{ 'a' ~ row.none ~ row.yes }}]", "[atrue]"),
        ("[{{ row.list | join('+') }}]", "[a+]"),
        ("[{{ '%s|%s' | format(row.none, 1) }}]", "[|1]"),
        ("[{{ row.wide | tojson }}]", "[1e5]"),
        ("{{ {'a': ['<'], 'b': {}} | tojson(indent=1) }}!", '{\n "a": [\n  "<"\n ],\n "b": {}\n}!'),
        ("a\n{{ row.number }}\n", "a\n7\n"),
    ],
)
def test_text(source, expected):
    """Null is nothing, never a word; booleans and JSON are written as JSON has them, numbers as they came."""
    assert rendered(source) == expected


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("source", ["{{ row.x }}", "is {{ row.x }}", "{{ [row.x] }}", "{{ row.x ~ 'a' }}"])
def test_not_a_number(number, source):
    """NaN and Infinity are an error for the record, never a word."""
    with pytest.raises(TemplateError, match=r"request\.body: the value is"):
        rendered(source, {"x": number})


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "x{{ ''.__class__ }}",
        "{{ row.keys.append(1) }}",
        "{{ row.text.format.__globals__ }}",
        "{{ range(10**9) | list }}",
        "{{ range }}",
        "{{ row.items() }}",
        "{{ 1 / 0 }}",
        "{{ row.missing }}",
        "x{{ row.missing }}",
        "{{ [row.missing] }}",
        "{{ row.table.missing }}",
        "{{ lipsum() }}",
    ],
)
def test_expression_that_fails(source):
    """What the sandbox forbids, a missing value or an error is a TemplateError that names its place."""
    with pytest.raises(TemplateError) as caught:
        rendered({"messages": [{"content": source}]})
    assert caught.value.message.startswith("request.body.messages[0].content: ")
    assert caught.value.remedy


@pytest.mark.parametrize(
    "source",
    [
        "{{",
        "{% if %}",
        "{{ row.x | nofilter }}",
        "{{ row.x | random }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% set row = 1 %}",
        "{% for call in [] %}{% endfor %}",
        "{{ call.key }}",
    ],
)
def test_template_that_cannot_be(source):
    """Syntax errors, chance, other files and taken names are found when the tree is compiled."""
    with pytest.raises(TemplateError, match=r"^request\.body\.a\[1\]: "):
        compile_tree({"a": ["x", source]}, where="request.body")


def test_syntax_error_names_its_line():
    """In a text of several lines a syntax error names the line, and what to do about braces."""
    with pytest.raises(TemplateError, match=r"request\.body, line 3: .*\n.*raw"):
        compile_tree("one\ntwo\n{{ oh no }}", where="request.body")


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        ("plain", set()),
        ("{{ row.a }}{{ row['b c'] }}", {"a", "b c"}),
        ({"x": "{{ row.a }}", "y": ["{% if row.b %}{{ row.c }}{% endif %}"]}, {"a", "b", "c"}),
        ("{{ row.a.b.c }}", {"a"}),
        ("{{ row.a | default(row.b) }}", {"a", "b"}),
        ("{% for x in row.list %}{{ x.row }}{% endfor %}", {"list"}),
        ("{{ row }}", None),
        ("{{ row | tojson }}", None),
        ("{{ row[row.a] }}", None),
        ("{% for k in row %}{{ k }}{% endfor %}", None),
        ("{{ 'a' in row }}", None),
        ("{% set x = row %}{{ x.a }}", None),
        ("{{ row | attr('a') }}", None),
        ("{% macro m(x) %}{{ row }}{% endmacro %}{{ m(1) }}", None),
        ("{% raw %}{{ row.a }}{% endraw %}", set()),
    ],
)
def test_columns(source, columns):
    """The used columns are found in the syntax trees; anything but row.x and row["x"] is the whole row."""
    found = compile_tree(source, where="request.body").columns
    assert found == (None if columns is None else frozenset(columns))


def test_union_of_columns():
    """Trees together use what each uses, and the whole row where one does."""
    a, b, whole = (compile_tree(s, where="x") for s in ("{{ row.a }}", "{{ row.b }}", "{{ row }}"))
    assert union([a, b]) == {"a", "b"}
    assert union([a, whole]) is None
    assert union([]) == frozenset()


def test_unknown_names_are_listed_together():
    """All unknown names come in one message, each with its place and a suggestion, and the columns there are."""
    body = compile_tree({"a": "{{ row.txt }}", "b": "{{ text }}", "c": "{{ row.score }} {{ zzz }}"}, where="body")
    key = compile_tree("{{ row['cost in eur'] }}", where="input.key")
    with pytest.raises(TemplateError) as caught:
        check_columns([body, key], ["id", "text", "score", "cost in EUR"])
    assert caught.value.message.splitlines() == [
        "body.a: no column 'txt'; did you mean row.text?",
        "body.b: unknown name 'text'; the column is written row.text",
        "body.c: unknown name 'zzz'",
        "input.key: no column 'cost in eur'; did you mean row[\"cost in EUR\"]?",
    ]
    assert caught.value.remedy == "The columns are: id, text, score, cost in EUR"


@pytest.mark.parametrize(
    "source", ["{{ row.x | default('') }}", "{% if row.x is defined %}{{ 1 }}{% endif %}", "{{ row }}"]
)
def test_column_that_may_be_missing(source):
    """A column under default or defined may be missing."""
    check_columns([compile_tree(source, where="body")], ["id"])


def test_columns_that_nobody_knows():
    """Where the input does not say its columns, only names that are no columns are unknown."""
    check_columns([compile_tree("{{ row.anything }}", where="body")], None)
    with pytest.raises(TemplateError, match="unknown name 'text'"):
        check_columns([compile_tree("{{ text }}", where="body")], None)


def test_call_only_where_it_is_allowed():
    """The name call is known where the caller allows it, and is no column."""
    tree = compile_tree({"Idempotency-Key": "{{ call.key }}"}, where="headers", call=True)
    assert tree.columns == frozenset()
    check_columns([tree], [])
    assert tree.render({}, {"key": "k1"}) == {"Idempotency-Key": "k1"}


def test_other_objects_go_through():
    """What is no JSON, a secret, goes through untouched and does not show in the repr."""
    secret = object()
    tree = compile_tree({"key": secret, "x": "{{ row.x }}"}, where="headers")
    assert tree.render({"x": 1})["key"] is secret
    assert "object" not in repr(tree)
    assert "hunter2" not in repr(compile_tree({"password": "hunter2"}, where="headers"))


def test_constant_tree():
    """A tree without a template is the same for every record."""
    tree = compile_tree({"a": [1, {"b": None}], "c": "}} text"}, where="body")
    assert tree.constant
    assert tree.render({}) is tree.render({"x": 1})
    assert not compile_tree({"a": ["{{ 1 }}"]}, where="body").constant


def test_escaped_text():
    """With an escape every value is escaped, and one expression alone stays text."""
    assert rendered("/u/{{ row.x }}", {"x": "a/b"}, escape=lambda text: text.replace("/", "|")) == "/u/a|b"
    assert rendered("{{ row.x }}", {"x": 5}, escape=str) == "5"


def test_input_hash_sees_used_columns_only():
    """The hash changes with a used column, with its type and with its absence, and with nothing else."""
    used = frozenset({"a", "b"})
    start = input_hash({"a": "1", "b": None, "c": 1}, used)
    assert len(start) == 32
    assert input_hash({"c": 2, "b": None, "a": "1"}, used) == start
    others = [{"a": 1, "b": None}, {"a": "1"}, {"a": "2", "b": None}, {"a": "1", "b": ""}]
    assert len({start, *(input_hash(data, used) for data in others)}) == 5


def test_input_hash_of_the_whole_row():
    """Where the whole row is used every column counts, whatever their order."""
    assert input_hash({"a": 1, "b": 2}, None) == input_hash({"b": 2, "a": 1}, None)
    assert input_hash({"a": 1, "b": 2}, None) != input_hash({"a": 1, "b": 3}, None)
    assert input_hash({"a": json_values.loads("1.0")}, None) != input_hash({"a": 1}, None)


def test_request_hash():
    """A request's hash follows its content, not the order of its keys."""
    assert request_hash({"a": 1, "b": [1, 2]}) == request_hash({"b": [1, 2], "a": 1})
    assert request_hash({"a": 1}) != request_hash({"a": 2})


def test_text_of_what_is_no_json():
    """What is no JSON is never written as a word."""
    with pytest.raises(ValueError, match="object, which JSON does not have"):
        text_of(object())
