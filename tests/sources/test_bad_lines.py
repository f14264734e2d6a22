"""Bad lines that are set aside: counted, kept in a file, and the rest is read."""

import json

import pytest
from sourcekit import rows, wheres

from rowcall.model.errors import InputError, OutputError

MIXED = b'id,text\n1,a\n2\n3,"b\n4,c\n\n5,caf\xe9\n6,d\n7,x\0y\n8,"e\nf"\n'


def aside(source):
    return [json.loads(line) for line in source.quarantine.read_text().splitlines()]


def test_bad_lines_are_set_aside(source, tmp_path):
    """Each bad line is in the file beside the input with its number, its fault and its text; the others are records."""
    made = source("a.csv", MIXED, on_bad="skip")
    assert made.quarantine == tmp_path / "a.csv.bad.jsonl"
    assert wheres(made) == ["a.csv:2", "a.csv:5", "a.csv:8", "a.csv:10"]
    assert made.skipped == 4
    assert aside(made) == [
        {"line": 3, "reason": "1 cells, fewer than the 2 columns", "raw": "2\n"},
        {"line": 4, "reason": "text after a closing quote", "raw": '3,"b\n'},
        {"line": 7, "reason": "not valid utf-8: byte 0xe9 at character 6", "raw": "5,caf\\xe9\n"},
        {"line": 9, "reason": "a NUL character", "raw": "7,x\0y\n"},
    ]


def test_json_lines_and_items_are_set_aside(source):
    """JSON Lines and the items of an array are set aside alike."""
    made = source("a.jsonl", '{"a": 1}\n{\n[]\n{"a": "\\udfff"}\n{"a": 2}\n', on_bad="skip")
    assert rows(made) == [{"a": 1}, {"a": 2}]
    assert [line["line"] for line in aside(made)] == [2, 3, 4]
    made = source("a.json", '[{"a": 1}, 5, {"a": "\\u0000"}]', on_bad="skip")
    assert rows(made) == [{"a": 1}]
    assert [(line["line"], line["raw"]) for line in aside(made)] == [(2, "5"), (3, '{"a": "\\u0000"}')]


def test_each_reading_writes_the_file_anew(source, tmp_path):
    """A second reading counts and writes the same; one that finds none takes the old file away."""
    made = source("a.csv", MIXED, on_bad="skip")
    for _ in range(2):
        rows(made)
        assert (made.skipped, len(aside(made))) == (4, 4)
    made = source("a.csv", "id,text\n1,a\n", on_bad="skip")
    rows(made)
    assert made.skipped == 0
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_a_reading_that_breaks_off_leaves_the_file(source, tmp_path):
    """The list of a complete reading is not replaced by that of a part."""
    made = source("a.csv", MIXED, on_bad="skip")
    rows(made)
    records = iter(made)
    assert [next(records).where for _ in range(3)]
    records.close()
    assert len(aside(made)) == 4
    assert {file.name for file in tmp_path.iterdir()} == {"a.csv", "a.csv.bad.jsonl"}


def test_the_columns_set_nothing_aside(source):
    """Looking at the columns writes no file and counts nothing."""
    made = source("a.jsonl", 'x\n{"a": 1}\n', on_bad="skip")
    assert made.columns() == ["a"]
    assert made.skipped == 0
    assert not made.quarantine.exists()


@pytest.mark.parametrize("content", [b"id,id\n1,a\n", b"\xff,text\n1,a\n", b'"id,text\n1,a\n'])
def test_a_bad_header_line_is_never_set_aside(source, content):
    """Without its header line a file has no columns; the next line must not take its place."""
    with pytest.raises(InputError, match=r"a\.csv:1: "):
        rows(source("a.csv", content, on_bad="skip"))


def test_broken_punctuation_of_an_array_ends_the_reading(source):
    """Where the next item of an array begins cannot be known once its punctuation is broken."""
    with pytest.raises(InputError):
        rows(source("a.json", '[{"a": 1} {"a": 2}]', on_bad="skip"))


def test_a_file_for_bad_lines_that_cannot_be_written(source, tmp_path):
    """Where bad lines cannot be kept the reading ends, saying why."""
    (tmp_path / "a.csv.bad.jsonl").mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        rows(source("a.csv", MIXED, on_bad="skip"))


def test_stop_says_how_to_go_on(source):
    """The message of a bad line names the option that sets it aside."""
    with pytest.raises(InputError) as caught:
        rows(source("a.csv", MIXED))
    assert 'on_bad = "skip"' in caught.value.remedy
