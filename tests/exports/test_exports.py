"""What a row becomes in a file, and that it comes out of that file as it was."""

import csv
import io
import json
import math
import sqlite3
import sys
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.model import json_values
from rowcall.model.errors import OutputError
from rowcall.output import open_export
from rowcall.sources import open_source

STRINGS = json.loads((Path(__file__).parent.parent / "data" / "strings" / "blns.json").read_text("utf-8"))
ROWS = [{"id": str(number), "text": text, "last": ""} for number, text in enumerate(STRINGS)]


def export(path, rows, **options):
    with open_export(path, **options) as file:
        for row in rows:
            file.write(row)
    return path


def read(path, **options):
    return [record.data for record in open_source(path, **options)]


def test_csv_cells(tmp_path):
    """Each kind of value has one spelling in a cell, and none of them is a word for nothing."""
    row = {
        "none": None,
        "text": ' a,"b" ',
        "empty": "",
        "true": True,
        "false": False,
        "int": 10**30,
        "float": 0.1,
        "number": json_values.Number("1e5"),
        "list": [1, json_values.Number("1.00"), None],
        "object": {"a": "é"},
    }
    written = export(tmp_path / "a.csv", [row]).read_text("utf-8")
    header, line = written.splitlines()
    assert header == ",".join(row)
    cells = [
        "",
        '" a,""b"" "',
        "",
        "true",
        "false",
        "1000000000000000000000000000000",
        "0.1",
        "1e5",
        '"[1,1.00,null]"',
        '"{""a"":""é""}"',
    ]
    assert line == ",".join(cells)


def test_csv_lines_end_in_lf(tmp_path):
    """Lines end in LF; CR and LF inside a cell stand in quotes."""
    written = export(tmp_path / "a.csv", [{"a": "x\ry", "b": "x\ny"}, {"a": "x\r\ny", "b": ""}]).read_bytes()
    assert written == b'a,b\n"x\ry","x\ny"\n"x\r\ny",\n'


def test_many_rows_are_as_few(tmp_path):
    """However rows are taken together, all come in their order, and one that cannot be written is named."""
    rows = [{"n": str(n), "text": ("a,b", "x\ry", 'say "y"', "plain " * 20)[n % 4]} for n in range(10_000)]
    assert read(export(tmp_path / "a.csv", rows)) == rows
    with pytest.raises(OutputError, match=r"b.csv, row 9001: "):
        export(tmp_path / "b.csv", [*rows[:9000], {"n": "\ud800"}, *rows], columns=["n", "text"])
    with pytest.raises(OutputError, match=r"b.csv, its header: "):
        export(tmp_path / "b.csv", rows, columns=["n", "\ud800"])


def test_stdout_has_rows_as_they_come(capfdbinary):
    """Whoever reads stdout has all rows before the one that could not be written."""
    with pytest.raises(OutputError, match="stdout, row 2"):
        export("-", [{"a": "fine"}, {"a": {1}}], columns=["a"])
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"a\nfine\n"


def test_a_row_of_one_empty_cell_is_no_blank_line(tmp_path):
    """A row whose only cell is empty is still a row when read again."""
    assert read(export(tmp_path / "a.csv", [{"a": ""}, {"a": None}, {"a": "x"}])) == [{"a": ""}, {"a": ""}, {"a": "x"}]


def test_columns(tmp_path):
    """The header is what was asked for, or the keys of all rows; a row may lack a column, but have no other."""
    assert export(tmp_path / "a.csv", [], columns=["b", "a"]).read_text() == "b,a\n"
    assert export(tmp_path / "a.csv", [{"a": 1}, {}], columns=["b", "a"]).read_text() == "b,a\n,1\n,\n"
    assert export(tmp_path / "a.csv", [{"b": 1, "a": 2}, {"a": 3}]).read_text() == "b,a\n1,2\n,3\n"
    with pytest.raises(OutputError, match=r"row 2: column 'c' is not in the header"):
        export(tmp_path / "b.csv", [{"a": 1}, {"a": 2, "c": 3}], columns=["a"])
    assert not (tmp_path / "b.csv").exists()
    assert export(tmp_path / "c.csv", [{"a": 1}, {"c": 3, "a": 2}]).read_text() == "a,c\n1,\n2,3\n"


def test_jsonl(tmp_path):
    """Each row is an object with the keys it has, numbers as they were written."""
    rows = [
        json_values.loads('{"b":1e5,"a":"é\\n","c":null}'),
        {},
        json_values.loads('{"id":9007199254740993,"n":1.00}'),
    ]
    written = export(tmp_path / "a.jsonl", rows, columns=["x"]).read_text("utf-8")
    assert written == '{"b":1e5,"a":"é\\n","c":null}\n{}\n{"id":9007199254740993,"n":1.00}\n'


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("value", [math.nan, math.inf, date(2026, 1, 1), {1, 2}, [math.nan], "\ud800"])
def test_values_that_no_file_holds(tmp_path, name, value):
    """What is no JSON is refused with its row, and never becomes a word such as nan."""
    with pytest.raises(OutputError, match=r"row 2: "):
        export(tmp_path / name, [{"a": 1}, {"a": value}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "a\rb"])
def test_tsv_refuses_what_it_cannot_hold(tmp_path, text):
    """Without quotes a cell can hold no tab and no line end."""
    with pytest.raises(OutputError, match=r"a.tsv, row 1: a tab or line end") as caught:
        export(tmp_path / "a.tsv", [{"a": text, "b": 1}])
    assert ".jsonl" in caught.value.remedy


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_hostile_strings_come_out_as_they_went_in(tmp_path, suffix):
    """The hostile strings pass through CSV and then through each format, unchanged."""
    first = export(tmp_path / "first.csv", ROWS)
    second = export(tmp_path / f"second.{suffix}", read(first))
    assert read(first) == read(second) == ROWS


ids = pytest.mark.parametrize("text", ["9007199254740993", "007", "1e5", "1.0", "1234567890" * 4])


@ids
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("origin", ["csv", "json", "sqlite"])
def test_ids_come_out_as_they_went_in(tmp_path, text, suffix, origin):
    """An id has the same digits at the end as in the CSV, JSON or SQLite that it came from."""
    source = open_origin(tmp_path, origin, text)
    out = export(tmp_path / f"out.{suffix}", [record.data for record in source])
    if suffix == "jsonl":
        assert out.read_text().strip() in (f'{{"id":{text},"text":"a"}}', f'{{"id":"{text}","text":"a"}}')
    else:
        assert read(out) == [{"id": text, "text": "a"}]


def open_origin(folder, origin, text):
    if origin == "csv":
        (folder / "in.csv").write_text(f"id,text\n{text},a\n")
        return open_source(folder / "in.csv")
    if origin == "json":
        literal = f'"{text}"' if text.startswith("00") else text  # JSON has no number with leading zeros
        (folder / "in.json").write_text(f'[{{"id": {literal}, "text": "a"}}]')
        return open_source(folder / "in.json")
    with closing(sqlite3.connect(folder / "in.db")) as database, database:
        kind = "INTEGER" if len(text) == 16 else "TEXT"
        database.execute(f"CREATE TABLE t (id {kind}, text TEXT)")
        database.execute("INSERT INTO t VALUES (?, 'a')", (text,))
    return open_source(folder / "in.db", sql="select * from t")


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=2, max_size=2)
    )
)
@settings(max_examples=100, deadline=None)
def test_any_text_comes_out_of_csv(tmp_path_factory, table):
    """Any text written as CSV is read as it was, by rowcall and by the csv module."""
    path = tmp_path_factory.mktemp("any") / "a.csv"
    rows = [dict(zip("ab", cells, strict=True)) for cells in table]
    export(path, rows, columns=["a", "b"])
    assert read(path) == rows
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == rows


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.csv.gz"])
def test_an_unknown_suffix_lists_what_is_known(tmp_path, name):
    """A format that is not written is refused with those that are; a format that is said goes before the suffix."""
    with pytest.raises(OutputError, match="is not a format that rowcall can write") as caught:
        export(tmp_path / name, [])
    assert ".csv .tsv .jsonl" in caught.value.remedy
    assert export(tmp_path / name, [{"a": 1}], format="jsonl").read_text() == '{"a":1}\n'


@pytest.mark.parametrize(("options", "expected"), [({}, b"a\n1\n"), ({"format": "jsonl"}, b'{"a":1}\n')])
def test_stdout(monkeypatch, tmp_path, options, expected):
    """``-`` writes to stdout, which stays open, and makes no file."""
    monkeypatch.chdir(tmp_path)
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", stdout)
    export("-", [{"a": 1}], **options)
    assert stdout.buffer.getvalue() == expected
    assert list(tmp_path.iterdir()) == []
