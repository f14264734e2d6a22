"""Which source a path gives, files that are not there, packed files, stdin and pipes."""

import gzip
import io
import os
import select
import subprocess
import sys
import threading

import pytest
from sourcekit import rows

from rowcall.model.errors import InputError
from rowcall.sources import SUFFIXES, open_source

CSV = b"id,text\n1,a\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("A.CSV", CSV),
        ("a.tsv", b"id\ttext\n1\ta\n"),
        ("a.jsonl", b'{"id":"1","text":"a"}'),
        ("a.ndjson", b'{"id":"1","text":"a"}'),
        ("a.json", b'[{"id":"1","text":"a"}]'),
    ],
)
def test_the_suffix_names_the_format(source, name, content):
    """Each suffix is read as what it names, packed or not, whether the name says that it is packed or not."""
    made = (
        source(name, content),
        source(f"{name}.gz", gzip.compress(content, mtime=0)),
        source(name, gzip.compress(content, mtime=0)),
    )
    for each in (*made, source(f"{name}.gz", content)):
        assert each.columns() == ["id", "text"]
        assert rows(each) == rows(each) == [{"id": "1", "text": "a"}]
        assert each.rereadable


def test_a_format_goes_before_the_suffix(source):
    """A file of any name can be read when its format is said."""
    assert rows(source("a.txt", CSV, format="csv")) == [{"id": "1", "text": "a"}]


@pytest.mark.parametrize("name", ["a.ods", "a.xls", "reviews", "a.txt.gz", ".csv"])
def test_an_unknown_suffix_lists_what_is_known(name):
    """A format that is not read is refused with all that are."""
    with pytest.raises(InputError, match="is not a format that rowcall reads") as caught:
        open_source(name)
    assert all(suffix in caught.value.remedy for suffix in SUFFIXES)


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("a.jsonl", {"header": ["a"]}, "header has no effect on jsonl"),
        ("a.json", {"quoting": True}, "quoting has no effect on json"),
        ("a.csv", {"sql": "select 1"}, "sql has no effect on csv"),
        ("a.db", {"encoding": "latin-1"}, "encoding has no effect on sqlite"),
        ("a.csv", {"encoding": "latin-l"}, "encoding 'latin-l' is unknown"),
        ("a.csv", {"encoding": "base64"}, "encoding 'base64' is unknown"),
        ("a.csv", {"encoding": ""}, "encoding '' is unknown"),
        ("a.csv", {"header": ["a", "a"]}, "repeated column name 'a'"),
        ("a.csv", {"header": ["a", ""]}, "column 2 has no name"),
    ],
)
def test_options_that_do_not_fit(source, name, options, what):
    """An option that a format does not know, or a value that makes no sense, is refused."""
    with pytest.raises(InputError, match=what):
        source(name, CSV, **options).columns()


def test_a_missing_file_names_what_comes_close(tmp_path):
    """A mistyped name gets the one that was meant, no companion of a database; nothing is read before it is asked."""
    (tmp_path / "reviews.csv").write_bytes(CSV)
    (tmp_path / "reviews.csv-wal").touch()
    for look in (lambda s: s.columns(), list):
        with pytest.raises(InputError, match=r"revews.csv: does not exist\n  did you mean reviews.csv\?"):
            look(open_source(tmp_path / "revews.csv"))
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        open_source(tmp_path / "none" / "a.csv").columns()


def test_a_folder_is_no_input(tmp_path):
    """A folder is refused as such."""
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        open_source(tmp_path / "a.csv").columns()


def test_messages_use_the_name_they_are_given(source):
    """The name in messages is the one of the config."""
    with pytest.raises(InputError, match=r"^data/in.csv:2: "):
        rows(source("a.csv", "id\n1,2\n", name="data/in.csv"))


@pytest.mark.parametrize("cut", [15, 40, -4])
def test_a_damaged_packed_file(source, cut):
    """A packed file that was cut short, or changed, is refused."""
    packed = gzip.compress(b"id,text\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(1000)))
    changed = packed[:60] + bytes([packed[60] ^ 255]) + packed[61:]
    for content in (packed[:cut], changed):
        with pytest.raises(InputError):
            rows(source("a.csv.gz", content))


def test_several_packed_parts(source):
    """Packed files that were joined are read to the end."""
    assert len(rows(source("a.csv.gz", gzip.compress(CSV, mtime=0) + gzip.compress(b"2,b\n", mtime=0)))) == 2


@pytest.fixture
def stdin(monkeypatch):
    def feed(content):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        return open_source("-")

    return feed


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        b' \n{"id":"1","text":"a"}\n',
        b'[{"id":"1","text":"a"}]',
        gzip.compress(CSV, mtime=0),
        '{"id":"1","text":"a"}\n'.encode("utf-16"),
    ],
)
def test_stdin_is_known_by_its_start(stdin, content):
    """Stdin is JSON where it begins so, otherwise CSV; looking at its columns takes nothing from it."""
    made = stdin(content)
    assert (made.name, made.rereadable) == ("stdin", False)
    assert made.columns() == made.columns() == ["id", "text"]
    assert rows(made) == [{"id": "1", "text": "a"}]
    assert made.columns() == ["id", "text"]


def test_stdin_is_read_once(stdin):
    """A second reading of stdin is refused, not empty."""
    made = stdin(CSV)
    assert rows(made)
    for look in (lambda: rows(made), made.columns):
        with pytest.raises(InputError, match="can be read only once"):
            look()


def test_stdin_of_a_process():
    """Records leave a pipe as they come, while whoever writes it still has more."""
    code = "from rowcall.sources import open_source\nfor r in open_source('-'): print(r.where, r.data, flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
        process.stdin.write('{"id": 1}\n{"id": 2}\n')
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 30)[0]
        assert process.stdout.readline() == "stdin:1 {'id': 1}\n"
        process.stdin.write('{"id": 3}\n')
        process.stdin.close()
        assert process.stdout.read() == "stdin:2 {'id': 2}\nstdin:3 {'id': 3}\n"


def test_a_named_pipe_is_read_once(tmp_path):
    """A named pipe is read like stdin: its start can be looked at, and then it is read once."""
    pipe = tmp_path / "a.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(CSV * 1,))
    writer.start()
    made = open_source(pipe)
    assert not made.rereadable
    assert made.columns() == ["id", "text"]
    assert rows(made) == [{"id": "1", "text": "a"}]
    writer.join()
