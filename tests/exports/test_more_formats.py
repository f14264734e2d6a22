"""JSON arrays, Parquet and SQLite tables as outputs; rows whose columns differ."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.model import json_values
from rowcall.model.errors import OutputError
from rowcall.output import check_export, open_export

MIXED = [{"id": "a", "n": 1}, {"id": "b", "x": [1, {"y": None}], "n": None}, {"id": "c", "n": 3, "ok": True}]


def export(path, rows, **options):
    with open_export(path, **options) as file:
        for row in rows:
            file.write(row)
    return path


def table(path, query='SELECT * FROM "t" ORDER BY 1'):
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query)]


@pytest.mark.parametrize("rows", [[], [{"a": 1}], MIXED])
def test_json_is_one_array(tmp_path, rows):
    """A .json file is one array with all rows, numbers as they were written."""
    assert json.loads(export(tmp_path / "a.json", rows).read_text()) == rows


def test_csv_of_rows_whose_columns_differ(tmp_path):
    """The header has the columns of all rows, in the order in which they come up."""
    written = export(tmp_path / "a.csv", MIXED).read_text()
    assert written == 'id,n,x,ok\na,1,,\nb,,"[1,{""y"":null}]",\nc,3,,true\n'


def test_a_table_is_made_and_grows(tmp_path):
    """A new table has the columns of all rows; values are what SQLite has for them."""
    path = export(tmp_path / "a.db", MIXED, table="t", key="id")
    assert table(path) == [
        {"id": "a", "n": 1, "x": None, "ok": None},
        {"id": "b", "n": None, "x": '[1,{"y":null}]', "ok": None},
        {"id": "c", "n": 3, "x": None, "ok": 1},
    ]


def test_rows_are_updated_by_their_key(tmp_path):
    """A second export updates what has the same key, adds what is new, and leaves other rows and columns alone."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('CREATE TABLE "t" (id TEXT, mine TEXT)')
        connection.execute("INSERT INTO t VALUES ('a', 'note'), ('z', 'stays')")
    export(path, [{"id": "a", "label": "x"}, {"id": "b", "label": "y"}], table="t", key="id")
    export(path, [{"id": "b", "label": "z"}], table="t", key="id")
    assert table(path) == [
        {"id": "a", "mine": "note", "label": "x"},
        {"id": "b", "mine": None, "label": "z"},
        {"id": "z", "mine": "stays", "label": None},
    ]


def test_a_table_has_all_rows_or_is_as_it_was(tmp_path):
    """An export that breaks off leaves the table, its columns too, as it was."""
    path = export(tmp_path / "a.db", [{"id": "a"}], table="t", key="id")
    with pytest.raises(OutputError, match="row 2: nan is not JSON"):
        export(path, [{"id": "b", "more": 1}, {"id": "c", "bad": [math.nan]}], table="t", key="id")
    assert table(path) == [{"id": "a"}]


@pytest.mark.parametrize("name", ['a "b"; drop table x', "select", "ä"])
def test_hostile_names(tmp_path, name):
    """Names of tables and columns are never read as SQL."""
    path = export(tmp_path / "a.db", [{name: "k", f"{name}2": json_values.Number("1" * 40)}], table=name, key=name)
    quoted = '"' + name.replace('"', '""') + '"'
    assert table(path, f"SELECT * FROM {quoted}") == [{name: "k", f"{name}2": "1" * 40}]


def test_a_table_that_cannot_be_written(tmp_path):
    """No database, a table without the key, one with repeated keys, stdout: each says what it is about."""
    (tmp_path / "no.db").write_text("not a database, and long enough to be read as one" * 50)
    with pytest.raises(OutputError, match="cannot be written"):
        export(tmp_path / "no.db", MIXED, table="t", key="id")
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE other (x TEXT)")
        connection.execute("CREATE TABLE twice (id TEXT)")
        connection.execute("INSERT INTO twice VALUES ('a'), ('a')")
    with pytest.raises(OutputError, match="has no column 'id'"):
        export(path, MIXED, table="other", key="id")
    with pytest.raises(OutputError, match="UNIQUE"):
        export(path, MIXED, table="twice", key="id")
    with pytest.raises(OutputError, match="stdout"):
        export("-", MIXED, format="sqlite")


class TestParquet:
    """Needs the extra ``parquet``."""

    @pytest.fixture(autouse=True)
    def _needs_pyarrow(self):
        pytest.importorskip("pyarrow", reason="needs the extra parquet: pip install 'rowcall[parquet]'")

    def read(self, path):
        from pyarrow import parquet

        return parquet.read_table(path)

    def test_types(self, tmp_path):
        """A column is of one type, text where its values have several; null stays null."""
        rows = [
            {
                "i": 1,
                "f": 1,
                "b": True,
                "s": "x",
                "m": 1,
                "o": {"a": 1},
                "big": json_values.Number("1" * 30),
                "none": None,
            },
            {
                "i": None,
                "f": 2.5,
                "b": None,
                "s": None,
                "m": "y",
                "o": [1],
                "big": json_values.Number("1e5"),
                "none": None,
            },
        ]
        found = self.read(export(tmp_path / "a.parquet", rows))
        assert [str(field.type) for field in found.schema] == [
            "int64",
            "double",
            "bool",
            "string",
            "string",
            "string",
            "string",
            "string",
        ]
        assert found.to_pylist() == [
            {"i": 1, "f": 1.0, "b": True, "s": "x", "m": "1", "o": '{"a":1}', "big": "1" * 30, "none": None},
            {"i": None, "f": 2.5, "b": None, "s": None, "m": "y", "o": "[1]", "big": "1e5", "none": None},
        ]

    def test_wide_integers(self, tmp_path):
        """A column with an integer that 64 bits do not hold is text, with all of its digits."""
        found = self.read(export(tmp_path / "a.parquet", [{"n": 1}, {"n": 2**63}]))
        assert found.column("n").to_pylist() == ["1", str(2**63)]

    def test_a_value_that_cannot_be_written(self, tmp_path):
        """What is no JSON is refused, and no file is made."""
        with pytest.raises(OutputError, match="nan is not JSON"):
            export(tmp_path / "a.parquet", [{"n": [math.nan]}])
        assert not list(tmp_path.iterdir())

    def test_groups(self, tmp_path, monkeypatch):
        """Rows are written in groups, so that memory holds no more than one; none is lost between two."""
        monkeypatch.setattr("rowcall.output.parquet_export.GROUP", 10)
        path = export(tmp_path / "a.parquet", [{"n": number} for number in range(25)])
        from pyarrow import parquet

        assert parquet.ParquetFile(path).num_row_groups == 3
        assert self.read(path).column("n").to_pylist() == list(range(25))

    @given(st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | st.booleans() | st.integers() | st.text())))
    @settings(max_examples=30, deadline=None)
    def test_any_rows_can_be_written(self, tmp_path_factory, rows):
        """Whatever columns rows have, as many come out as went in."""
        rows = [{"id": "x"}, *rows]
        path = export(tmp_path_factory.mktemp("any") / "a.parquet", rows)
        assert self.read(path).num_rows == len(rows)

    def test_no_rows(self, tmp_path):
        """An export of nothing is a file of nothing."""
        assert self.read(export(tmp_path / "a.parquet", [])).num_rows == 0


def test_parquet_without_its_library(tmp_path, monkeypatch):
    """Where pyarrow is missing the message says how to have it, before anything is called."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(OutputError, match="needs pyarrow") as caught:
        check_export(tmp_path / "a.parquet")
    assert caught.value.remedy == "pip install 'rowcall[parquet]'"
