"""Parquet and .xlsx files as inputs."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import zipfile

import pytest
from sourcekit import DATA, rows, wheres

from rowcall.model.errors import InputError
from rowcall.sources import open_source

SHEET = """<?xml version="1.0" encoding="UTF-8"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>"""
BOOK = """<?xml version="1.0" encoding="UTF-8"?>
<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>{sheets}</sheets></workbook>"""
RELATIONS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}</Relationships>"""
KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_xlsx(path, **sheets):
    """A workbook as ECMA-376 has it, as small as it can be."""
    with zipfile.ZipFile(path, "w") as book:
        named = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
        related = "".join(
            f'<Relationship Id="r{n}" Type="{KIND}/worksheet" Target="worksheets/{n}.xml"/>'
            for n, _ in enumerate(sheets, 1)
        )
        office = f'<Relationship Id="a" Type="{KIND}/officeDocument" Target="xl/workbook.xml"/>'
        book.writestr("_rels/.rels", RELATIONS.format(relations=office))
        book.writestr("xl/workbook.xml", BOOK.format(sheets=named))
        book.writestr("xl/_rels/workbook.xml.rels", RELATIONS.format(relations=related))
        for n, lines in enumerate(sheets.values(), 1):
            book.writestr(f"xl/worksheets/{n}.xml", SHEET.format(rows="".join(map(_row, enumerate(lines, 1)))))


def _row(numbered):
    number, cells = numbered
    written = "".join(_cell(f"{'ABCD'[n]}{number}", cell) for n, cell in enumerate(cells))
    return f'<row r="{number}">{written}</row>'


def _cell(place, cell):
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return f'<c r="{place}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{cell}</t></is></c>'
    return f'<c r="{place}"><v>{cell}</v></c>'


class TestXlsx:
    """Needs the extra ``xlsx``."""

    @pytest.fixture(autouse=True)
    def _needs_calamine(self):
        pytest.importorskip("python_calamine", reason="needs the extra xlsx: pip install 'rowcall[xlsx]'")

    def test_cells(self, tmp_path):
        """The first row names the columns; whole numbers are whole, nothing is an empty text, empty rows are none."""
        lines = [["id", "text", "x"], [1, "good", 1.5], [None, None, None], [12345678, None, True]]
        write_xlsx(tmp_path / "a.xlsx", one=lines)
        source = open_source(tmp_path / "a.xlsx")
        assert source.columns() == ["id", "text", "x"]
        assert rows(source) == [{"id": 1, "text": "good", "x": 1.5}, {"id": 12345678, "text": "", "x": True}]
        assert wheres(source) == ["a.xlsx, row 1", "a.xlsx, row 2"]

    def test_sheets(self, tmp_path):
        """A sheet is taken by its name; one that is not there is answered with those that are."""
        write_xlsx(tmp_path / "a.xlsx", one=[["a"], ["x"]], two=[["b"], ["y"]])
        assert rows(open_source(tmp_path / "a.xlsx")) == [{"a": "x"}]
        assert rows(open_source(tmp_path / "a.xlsx", sheet="two")) == [{"b": "y"}]
        with pytest.raises(InputError, match="no sheet 'three'") as caught:
            rows(open_source(tmp_path / "a.xlsx", sheet="three"))
        assert "one, two" in caught.value.remedy

    @pytest.mark.parametrize(
        ("lines", "said"),
        [([], "empty"), ([["a", "a"], [1, 2]], "repeated column"), ([["a", None, "c"], [1, 2, 3]], "without a name")],
    )
    def test_what_has_no_columns(self, tmp_path, lines, said):
        """A sheet without a header, or with one that names nothing or twice the same, is refused."""
        write_xlsx(tmp_path / "a.xlsx", one=lines)
        with pytest.raises(InputError, match=said):
            rows(open_source(tmp_path / "a.xlsx"))

    def test_real_files(self):
        """Workbooks that others made: an empty first sheet, data beside its header, a sheet with a name of its own."""
        source = open_source(DATA / "csv-edge" / "sheets.xlsx", sheet="\u02a4")
        assert rows(source) == [{"a": 1, "b": 2, "c": 3}]
        for name, sheet, said in (("sheets", None, "empty"), ("sheets", "data", "without"), ("test", None, "without")):
            with pytest.raises(InputError, match=said):
                rows(open_source(DATA / "csv-edge" / f"{name}.xlsx", sheet=sheet))

    def test_no_xlsx(self, tmp_path):
        """What is none says so, with its name."""
        (tmp_path / "a.xlsx").write_text("id,text\n")
        with pytest.raises(InputError, match=r"a\.xlsx: cannot be read as \.xlsx"):
            rows(open_source(tmp_path / "a.xlsx"))


class TestParquet:
    """Needs the extra ``parquet``."""

    @pytest.fixture(autouse=True)
    def _needs_pyarrow(self):
        pytest.importorskip("pyarrow", reason="needs the extra parquet: pip install 'rowcall[parquet]'")

    def write(self, path, columns):
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), path)
        return path

    def test_values(self, tmp_path):
        """Each kind of value is what JSON has for it, with all of its digits."""
        moment = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
        columns = {
            "i": [9007199254740993],
            "f": [0.1],
            "nan": [math.nan],
            "none": [None],
            "s": ["ä"],
            "b": [True],
            "d": [dt.date(2026, 1, 2)],
            "t": [moment],
            "m": [decimal.Decimal("1.10")],
            "l": [[1, 2]],
            "o": [{"a": 1}],
        }
        [row] = rows(open_source(self.write(tmp_path / "a.parquet", columns)))
        assert str(row.pop("m")) == "1.10"
        assert row == {
            "i": 9007199254740993,
            "f": 0.1,
            "nan": None,
            "none": None,
            "s": "ä",
            "b": True,
            "d": "2026-01-02",
            "t": moment.isoformat(),
            "l": [1, 2],
            "o": {"a": 1},
        }

    def test_batches(self, tmp_path, monkeypatch):
        """Rows come in order over many batches, as often as they are asked for."""
        monkeypatch.setattr("rowcall.sources.parquet_xlsx.BATCH", 7)
        source = open_source(self.write(tmp_path / "a.parquet", {"n": list(range(30))}))
        assert rows(source) == rows(source) == [{"n": number} for number in range(30)]

    def test_bad_rows(self, tmp_path):
        """Infinity and bytes are no JSON: the row is named, or set aside."""
        path = self.write(tmp_path / "a.parquet", {"f": [1.0, math.inf]})
        with pytest.raises(InputError, match=r"a\.parquet, row 2: column 'f' contains inf"):
            rows(open_source(path))
        source = open_source(path, on_bad="skip")
        assert rows(source) == [{"f": 1.0}]
        assert source.skipped == 1
        with pytest.raises(InputError, match="column 'x' contains bytes"):
            rows(open_source(self.write(tmp_path / "b.parquet", {"x": [b"\0"]})))

    def test_no_parquet(self, tmp_path):
        """What is none says so, with its name."""
        (tmp_path / "a.parquet").write_text("id,text\n")
        with pytest.raises(InputError, match=r"a\.parquet: cannot be read as Parquet"):
            rows(open_source(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("suffix", "module", "extra"), [("parquet", "pyarrow", "parquet"), ("xlsx", "python_calamine", "xlsx")]
)
def test_without_the_library(tmp_path, monkeypatch, suffix, module, extra):
    """Where a library is missing the message is the command that brings it."""
    monkeypatch.setitem(__import__("sys").modules, module, None)
    (tmp_path / f"a.{suffix}").write_text("x")
    with pytest.raises(InputError, match="needs") as caught:
        open_source(tmp_path / f"a.{suffix}").columns()
    assert caught.value.remedy == f"pip install 'rowcall[{extra}]'"


@pytest.mark.parametrize("name", ["a.parquet.gz", "a.xlsx.gz"])
def test_packed_tables(tmp_path, name):
    """They are packed already, and are not read through gzip."""
    with pytest.raises(InputError, match="packed"):
        open_source(tmp_path / name)
