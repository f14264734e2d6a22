"""CSV and TSV: what a line becomes, where it was, and what is refused."""

import codecs
import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sourcekit import rows, wheres

from rowcall.model.errors import InputError
from rowcall.sources.bad_lines import stop
from rowcall.sources.csv_source import Delimited


def test_values_stay_text(source):
    """A cell is the text that stands in it, whatever it looks like."""
    found = rows(source("a.csv", "id,n,e\n007,1e5,\n9007199254740993,1.0,NULL\n"))
    assert found == [{"id": "007", "n": "1e5", "e": ""}, {"id": "9007199254740993", "n": "1.0", "e": "NULL"}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(source, end):
    """Lines end in LF, CRLF or CR, with or without one after the last, and are counted alike."""
    lines = ["id,text", "1,a", "2,b"]
    for content in (end.join(lines), end.join([*lines, ""])):
        made = source("a.csv", content)
        assert rows(made) == [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]
        assert wheres(made) == ["a.csv:2", "a.csv:3"]


def test_where_is_the_line_a_record_begins_on(source):
    """Quoted line ends and blank lines count as lines; a record is known by its first one."""
    made = source("a.csv", 'id,text\n1,"two\r\nlines\rthree"\n\n\r\n2,b\n3,"x\n\n"\n4,d\n')
    assert wheres(made) == ["a.csv:2", "a.csv:7", "a.csv:8", "a.csv:11"]
    assert rows(made)[0]["text"] == "two\r\nlines\rthree"


def test_only_cr_and_lf_end_a_line(source):
    """Form feeds, NEL and the Unicode separators are text."""
    text = "a\x0b\x0c\x1c\x1d\x85\u2028\u2029b"
    assert rows(source("a.csv", f"id,text\n1,{text}\n")) == [{"id": "1", "text": text}]


def test_a_cell_over_128_kib(source):
    """A cell of a megabyte is read whole."""
    text = "x" * 1_000_000
    assert rows(source("a.csv", f'id,text\n1,"{text}"\n'))[0]["text"] == text


def test_tsv_takes_quotes_as_text(source):
    """In a .tsv a double quote is a character, unless quoting is asked for; in a .csv it is one if quoting is off."""
    content = 'id\ttext\n1\t"a\n2\t"b"\n'
    assert [row["text"] for row in rows(source("a.tsv", content))] == ['"a', '"b"']
    assert rows(source("b.tsv", 'id\ttext\n1\t"a\tb"\n', quoting=True)) == [{"id": "1", "text": "a\tb"}]
    assert rows(source("c.csv", 'id,text\n1,"a\n', quoting=False)) == [{"id": "1", "text": '"a'}]


def test_header_given(source):
    """With a header given the first line is a record."""
    made = source("a.csv", "1,a\n2,b\n", header=["id", "text"])
    assert made.columns() == ["id", "text"]
    assert rows(made) == [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]
    assert wheres(made) == ["a.csv:1", "a.csv:2"]


def test_header_only_is_no_record(source):
    """A header line alone is an input of no records."""
    made = source("a.csv", "id,text\n")
    assert made.columns() == ["id", "text"]
    assert rows(made) == []


@pytest.mark.parametrize("content", [b"", b"\n\r\n\n", codecs.BOM_UTF8])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json"])
def test_an_empty_file_is_refused(source, name, content):
    """A file that holds nothing is a mistake of whoever wrote it, said so at the first look."""
    made = source(name, content)
    for look in (made.columns, lambda: rows(made)):
        with pytest.raises(InputError, match="is empty"):
            look()


def test_an_empty_file_with_a_header_given_is_refused(source):
    """Columns that are known do not make an empty file an input."""
    with pytest.raises(InputError, match="is empty"):
        rows(source("a.csv", "", header=["id"]))


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        ("id,text\n1,a\n2,b,c\n", "a.csv:3", "3 cells, more than the 2 columns"),
        ("id,text\n1,a\n2\n", "a.csv:3", "1 cells, fewer than the 2 columns"),
        ('id,text\n1,"a\n2,b\n', "a.csv:2", "a quote that is not closed"),
        ('id,text\n1,"a" b\n', "a.csv:2", "text after a closing quote"),
        ("id,text\n1,a\0b\n", "a.csv:2", "a NUL character"),
        (b"id,text\n1,caf\xe9\n", "a.csv:2", "not valid utf-8: byte 0xe9 at character 6"),
        (b"id,text\n1,\xed\xa0\x80\n", "a.csv:2", "not valid utf-8: byte 0xed at character 3"),
        (b"id,text\n1,\xe2\x82", "a.csv:2", "not valid utf-8: byte 0xe2 at character 3"),
        ("id,\0\n1,a\n", "a.csv:1", "a NUL character"),
        ("id,id\n1,a\n", "a.csv:1", "repeated column name 'id'"),
        ("\nid,,x, \n1,a,b,c\n", "a.csv:2", "column 2, 4 has no name"),
    ],
)
def test_what_is_refused(source, content, where, what):
    """A line that is no record ends the reading with its place, its fault and a remedy."""
    with pytest.raises(InputError) as caught:
        rows(source("a.csv", content))
    assert (caught.value.where, caught.value.message) == (where, f"{where}: {what}")
    assert caught.value.remedy


def test_records_before_a_bad_line_come_first(source):
    """What stands before a bad line is read."""
    records = iter(source("a.csv", "id,text\n1,a\n2\n"))
    assert next(records).data == {"id": "1", "text": "a"}
    with pytest.raises(InputError):
        next(records)


def test_columns_do_not_look_at_the_records(source):
    """A bad line is the reading's matter; the columns are known before it."""
    assert source("a.csv", "id,text\n1\n").columns() == ["id", "text"]


def test_an_open_quote_ends_with_the_next_quote(source):
    """A stray quote costs its own line, and not all that follows."""
    made = source("a.csv", 'id,text\n1,"a\n2,b\n3,"c"\n4,d\n', on_bad="skip")
    assert [row["id"] for row in rows(made)] == ["2", "3", "4"]
    assert made.skipped == 1


def test_an_open_quote_does_not_collect_without_end(source, monkeypatch):
    """A cell longer than the limit is an open quote: the line it is on is bad, those after it are read."""
    monkeypatch.setattr("rowcall.sources.csv_source.CELL_LIMIT", 200_000)
    before = csv.field_size_limit(131_072)
    made = source("a.csv", 'id,text\n1,"a\n' + "2,b\n" * 100_000, on_bad="skip")
    try:
        assert len(rows(made)) == 100_000
    finally:
        csv.field_size_limit(before)
    assert made.skipped == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_byte_order_mark_says_the_encoding(source, name, encoding):
    """A mark at the start decides, goes before what was asked for, and is no part of the first name."""
    content = "id\ttext\n1\tʤ 😀\n".replace("\t", "," if name == "a.csv" else "\t").encode(encoding)
    for asked in (None, "latin-1", "utf-16-le"):
        made = source(name, content, encoding=asked)
        assert made.columns() == ["id", "text"]
        assert rows(made) == [{"id": "1", "text": "ʤ 😀"}]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-16-be"])
def test_other_encodings(source, encoding):
    """Without a mark a file is read in the encoding that was asked for."""
    assert rows(source("a.csv", "id,text\n1,café\n".encode(encoding), encoding=encoding))[0]["text"] == "café"


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        ("id,t\n1,ok\n2,é\n".encode(), "ascii", 3),
        ("id,t\n1,é\n".encode("shift_jis", "ignore") + b"\x82", "shift_jis", 3),
    ],
)
def test_a_wrong_encoding_gives_line_and_remedy(source, content, encoding, line):
    """A byte that the asked encoding cannot hold is found on its line."""
    with pytest.raises(InputError, match=f"a.csv:{line}: not valid {encoding}") as caught:
        rows(source("a.csv", content, encoding=encoding))
    assert "encoding" in caught.value.remedy


def test_utf16_without_a_mark_gets_a_hint(source):
    """UTF-16 read as UTF-8 is full of NUL; the remedy names the encoding."""
    with pytest.raises(InputError, match="NUL") as caught:
        rows(source("a.csv", "id,text\n1,a\n".encode("utf-16-le")))
    assert "utf-16" in caught.value.remedy


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=2, max_size=2),
        max_size=8,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=200, deadline=None)
def test_reads_what_csv_writes(table, end):
    """Any text that is quoted as RFC 4180 has it comes out as it went in, on the line where it stands."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([["a", "b"], *table])
    text = io.TextIOWrapper(io.BytesIO(written.getvalue().encode()), "utf-8", newline="")
    found = list(Delimited("a.csv", ",", quoting=True).records(text, stop))
    assert [list(record.data.values()) for record in found] == table
