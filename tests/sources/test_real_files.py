"""Files that are known to be hard (see tests/data): each is read right, or refused with its reason."""

import json

import pytest
from sourcekit import DATA, rows

from rowcall.model.errors import InputError
from rowcall.sources import open_source

SPECTRUM = sorted(path.stem for path in (DATA / "csv-spectrum").glob("*.csv"))
EDGE = DATA / "csv-edge"


@pytest.mark.parametrize("name", SPECTRUM)
def test_csv_spectrum(name):
    """Each file of csv-spectrum gives what its JSON says."""
    found = rows(open_source(DATA / "csv-spectrum" / f"{name}.csv"))
    expected = json.loads((DATA / "csv-spectrum" / "json" / f"{name}.json").read_text("utf-8"))
    if name == "location_coordinates":  # its JSON is one object, with another phone number than its CSV
        expected = [expected | {"Contact Phone Number": "2095257564"}]
    assert found == expected


READ = {
    "blanks.csv": [{"a": "", "b": "NA", "c": "N/A", "d": "NONE", "e": "NULL", "f": "."}],
    "date_like_number.csv": [{"a": "4.5"}],
    "dummy.csv.gz": [{"a": "1", "b": "2", "c": "3"}],
    "mac_newlines.csv": [{"a": "1", "b": "2", "c": "3"}, {"a": "Once upon\ra time", "b": "5", "c": "6"}],
    "no_header_row.csv": [],
    "optional_quote_characters.csv": [{"a": "1", "b": "2", "c": "3"}],
    "test_header_newline.csv": [{"\t\n\x0b\x0c\r start \t\n\x0b\x0c\r end \t\n\x0b\x0c\r": "d", "b": "e", "c": "f"}],
    "test_utf16_big.csv": [{"a": "1", "b": "2", "c": "3"}, {"a": "4", "b": "5", "c": "ʤ"}],
    "test_utf16_little.csv": [{"a": "1", "b": "2", "c": "3"}, {"a": "4", "b": "5", "c": "ʤ"}],
    "test_utf8_bom.csv": [{"foo": "1", "bar": "2", "baz": "3"}, {"foo": "4", "bar": "5", "baz": "ʤ"}],
}
REFUSED = {
    "bad.csv": "bad.csv:2: 4 cells, more than the 3 columns",
    "empty.csv": "empty.csv: is empty",
    "null_byte.csv": "null_byte.csv:2: a NUL character",
    "test_empty_columns.csv": "test_empty_columns.csv:1: column 4, 5 has no name",
    "test_latin1.csv": "test_latin1.csv:3: not valid utf-8: byte 0xa9 at character 5",
}
BY_AN_EXTRA = {"sheets.xlsx", "test.xlsx"}  # test_table_files.py


def test_every_file_has_its_expectation():
    """No file of csv-edge is left out."""
    assert {path.name for path in EDGE.iterdir()} == READ.keys() | REFUSED.keys() | BY_AN_EXTRA | {"LICENSE.txt"}


@pytest.mark.parametrize("name", READ)
def test_csv_edge_read(name):
    """A file of csv-edge that can be read gives its cells as they stand."""
    assert rows(open_source(EDGE / name)) == READ[name]


@pytest.mark.parametrize("name", REFUSED)
def test_csv_edge_refused(name):
    """A file of csv-edge that cannot be read is refused with its reason and a remedy."""
    with pytest.raises(InputError) as caught:
        rows(open_source(EDGE / name))
    assert caught.value.message == REFUSED[name]
    assert caught.value.remedy


def test_the_remedies_work():
    """What the refusals advise makes the files readable."""
    assert rows(open_source(EDGE / "no_header_row.csv", header=["a", "b", "c"])) == [{"a": "1", "b": "2", "c": "3"}]
    assert rows(open_source(EDGE / "test_latin1.csv", encoding="latin-1"))[1]["c"] == "©"
