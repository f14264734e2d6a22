"""JSON Lines, JSON arrays and batch files: numbers as written, faults with their place."""

import codecs
import gzip
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sourcekit import rows, wheres

from rowcall.model import json_values
from rowcall.model.errors import InputError
from rowcall.sources import json_source, open_source

NUMBERS = ["9007199254740993", "007"[1:], "1e5", "1.0", "-0", "0.1", "1" * 40, "1E+2", "0.10"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json"])
@pytest.mark.parametrize("number", NUMBERS[:1] + NUMBERS[2:])
def test_numbers_keep_their_text(source, name, number):
    """A number comes out with the digits it came in with."""
    content = f'{{"id":{number}}}'
    made = source(name, f"[{content}]" if name == "a.json" else content + "\n")
    assert json_values.dumps(rows(made)[0]).decode() == content


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines(source, end):
    """Each line is a record; blank ones are nothing but counted; a mark at the start is no part of it."""
    content = end.join(['{"id": 1}', "", " \t", '{"id": 2, "text": "a\u2028b"}', ""])
    made = source("a.jsonl", codecs.BOM_UTF8 + content.encode())
    assert rows(made) == [{"id": 1}, {"id": 2, "text": "a\u2028b"}]
    assert wheres(made) == ["a.jsonl:1", "a.jsonl:4"]
    assert made.columns() == ["id", "text"]


def test_columns_are_the_keys_of_the_first_100_records(source):
    """Keys that appear later are not known at the start."""
    lines = [json.dumps({"id": n} | ({"late": 1} if n == 100 else {"b": 1} if n == 99 else {})) for n in range(101)]
    assert source("a.jsonl", "\n".join(lines)).columns() == ["id", "b"]
    assert source("a.json", f"[{','.join(lines)}]").columns() == ["id", "b"]


LINES = [
    ("{", "not valid JSON: Expecting property name enclosed in double quotes"),
    ('{"a": 1} {"a": 2}', "not valid JSON: Extra data at character 10"),
    ('{"a": NaN}', "not valid JSON: NaN is not JSON"),
    ('{"a": -Infinity}', "not valid JSON: -Infinity is not JSON"),
    ('{"a": "\\ud800"}', "a lone surrogate, which is half of a character"),
    ('{"a": "x\\\\\\u0000"}', "a NUL character"),
    ("[1]", "an array, not an object"),
    ('"a"', "a string, not an object"),
    ("null", "null, not an object"),
    ("true", "true or false, not an object"),
    ("1e5", "a number, not an object"),
    ('{"a":' * 100_000, "not valid JSON: nested too deeply"),
]


@pytest.mark.parametrize(("line", "what"), LINES, ids=[what for _, what in LINES])
def test_lines_that_are_refused(source, line, what):
    """A line that is no JSON object, or no text, ends the reading with its place and fault."""
    with pytest.raises(InputError) as caught:
        rows(source("a.jsonl", f'{{"a": 1}}\n\n{line}\n'))
    assert caught.value.message.startswith(f"a.jsonl:3: {what}")
    assert caught.value.remedy


def test_a_backslash_before_u0000_is_no_nul(source):
    r"""The text ``\u0000``, spelt with an escaped backslash, is six characters."""
    assert rows(source("a.jsonl", '{"a": "\\\\u0000"}\n')) == [{"a": "\\u0000"}]


def test_a_byte_that_is_no_utf8(source):
    """An undecodable byte is found on its line, also in an array."""
    with pytest.raises(InputError, match=r"a.jsonl:2: not valid utf-8: byte 0xff at character 8"):
        rows(source("a.jsonl", b'{"a": 1}\n{"a": "\xff"}\n'))
    with pytest.raises(InputError, match=r"a.json, item 2: not valid utf-8: byte 0xff"):
        rows(source("a.json", b'[{"a": 1},\n{"a": "\xff"}]'))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_mark_says_the_encoding(source, encoding):
    """JSON too is read by its byte order mark."""
    assert rows(source("a.json", '[{"a": "ʤ"}]'.encode(encoding))) == [{"a": "ʤ"}]
    assert rows(source("a.jsonl", '{"a": "ʤ"}\n'.encode(encoding))) == [{"a": "ʤ"}]


def test_an_array_without_items(source):
    """An empty array is an input of no records; its columns are not known."""
    made = source("a.json", " [ ]\n")
    assert rows(made) == []
    assert made.columns() is None


def test_items_of_an_array_are_known_by_their_place(source):
    """All of an array may stand on one line, so an item is known by its number."""
    assert wheres(source("a.json", '[{"a":1},{"a":2}]')) == ["a.json, item 1", "a.json, item 2"]


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        ('{"a": 1}\n{"a": 2}', "a.json:1", "found '{' instead of '['"),
        ('[{"a": 1}\n{"a": 2}]', "a.json:2", "found '{' instead of ']'"),
        ('[{"a": 1},\n{"a": 2}\n', "a.json:3", "the file ends too early"),
        ('[{"a": 1},\n{"a": ', "a.json:2", "not valid JSON: Expecting value"),
        ('[{"a": 1},\n{"a": "x', "a.json:2", "not valid JSON: Unterminated string starting at"),
        ('[{"a": 1},\n]', "a.json:2", "not valid JSON: Expecting value"),
        ('[\n{"a": 1}\n] x', "a.json:3", "text after the end of the array"),
        ("[\n" + "[" * 100_000, "a.json:2", "not valid JSON: nested too deeply"),
        (
            "[\n" + " " * 100_000 + '{"a" 1}' + " " * 100_000 + "\n]",
            "a.json:2",
            "not valid JSON: Expecting ':' delimiter",
        ),
        ('[{"a": 1}, 5]', "a.json, item 2", "a number, not an object"),
    ],
)
def test_arrays_that_are_refused(source, content, where, what):
    """A fault in an array is told with the line it is on, or the item that it is."""
    with pytest.raises(InputError) as caught:
        rows(source("a.json", content))
    assert (caught.value.where, caught.value.message) == (where, f"{where}: {what}")
    assert caught.value.remedy


def test_a_fault_in_an_array_is_found_without_reading_on(tmp_path):
    """Wrong punctuation ends the reading there; the rest of a large file is not taken in to see whether it helps."""
    file = tmp_path / "a.json.gz"
    with gzip.open(file, "wb") as packed:
        packed.write(b'[{"a" 1},')
        for _ in range(64):
            packed.write(b" " * 1_000_000)
    taken = []
    made = open_source(file)
    layout = made._format_for(b"[")

    class Counting:
        encoding = "utf-8"

        def __init__(self, text):
            self.text = text

        def read(self, size):
            taken.append(size)
            return self.text.read(size)

    with gzip.open(file, "rt") as text, pytest.raises(InputError, match="delimiter"):
        list(layout.records(Counting(text), None))
    assert sum(taken) < 1_000_000


@given(
    st.lists(
        st.dictionaries(
            st.text("ab\\\"'{}[],:é😀\n", max_size=4),
            st.recursive(
                st.one_of(st.none(), st.booleans(), st.integers(-(10**25), 10**25), st.text('ab\\"[]{},:é😀\n\t')),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
                max_leaves=5,
            ),
            max_size=3,
        ),
        max_size=6,
    ),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
)
@settings(max_examples=200, deadline=None)
def test_an_array_may_be_cut_anywhere(items, indent, block):
    """Wherever the blocks of the reading end, the items come out whole."""
    text = io.TextIOWrapper(io.BytesIO(json.dumps(items, indent=indent).encode()), "utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_source, "_BLOCK", block)
        found = [record.data for record in json_source.JsonArray("a").records(text, json_source.ignore)]
    assert json_values.dumps(found) == json_values.dumps(json_values.loads(json.dumps(items)))


@pytest.mark.parametrize("block", range(1, 12))
def test_a_cut_number_is_not_taken_for_a_whole_one(monkeypatch, block):
    """An item that is a number is read to its end before it is refused."""
    monkeypatch.setattr(json_source, "_BLOCK", block)
    text, bad = io.TextIOWrapper(io.BytesIO(b'[12345,{"a":1}]'), "utf-8"), []
    assert [record.data for record in json_source.JsonArray("a").records(text, bad.append)] == [{"a": 1}]
    assert [line.raw for line in bad] == ["12345"]


def test_an_item_of_megabytes(source):
    """An item longer than any block is read whole."""
    text = "x" * 3_000_000
    assert rows(source("a.json", json.dumps([{"a": text}, {"a": "b"}]))) == [{"a": text}, {"a": "b"}]


BATCH = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m"}}


def test_batch_lines_are_records(source):
    """A line of a batch file is a record with its four fields."""
    assert rows(source("a.jsonl", json.dumps(BATCH) + "\n", format="openai-batch")) == [BATCH]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"custom_id": ""}, "custom_id must be a text that is not empty"),
        ({"custom_id": 1}, "custom_id must be a text that is not empty"),
        ({"method": "GET"}, 'method must be "POST"'),
        ({"method": "POST\n"}, 'method must be "POST"'),
        ({"url": "https://api.example.com/v1"}, "url must be a path"),
        ({"body": "{}"}, "body must be an object"),
        ({"body": {"stream": True}}, "stream: true is not possible in a batch file"),
        ({"body": None}, "body must be an object"),
    ],
)
def test_batch_lines_that_are_refused(source, change, what):
    """A line that no file could answer is refused with its number."""
    lines = f"{json.dumps(BATCH)}\n{json.dumps(BATCH | change)}\n"
    with pytest.raises(InputError, match=f"a.jsonl:2: {what}"):
        rows(source("a.jsonl", lines, format="openai-batch"))


@pytest.mark.parametrize("field", BATCH)
def test_batch_lines_lack_nothing(source, field):
    """Each of the four fields must be there."""
    line = {name: value for name, value in BATCH.items() if name != field}
    with pytest.raises(InputError, match=f"a.jsonl:1: {field} is missing"):
        rows(source("a.jsonl", json.dumps(line), format="openai-batch"))
