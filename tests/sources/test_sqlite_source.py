"""SQLite: the rows of a query as they are, over a connection that cannot write."""

import json
import sqlite3
import threading
from contextlib import closing

import pytest
from sourcekit import rows, wheres

from rowcall.model.errors import InputError
from rowcall.sources import open_source


@pytest.fixture
def database(tmp_path):
    file = tmp_path / "my reviews?#.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("""
            CREATE TABLE items (id INTEGER, text TEXT, score REAL);
            INSERT INTO items VALUES (9007199254740993, 'a', 1.0), (-9223372036854775808, '', NULL), (7, '007', 0.5);
        """)
    return file


def test_values_are_those_of_the_database(database):
    """Integers are exact, text is text, NULL is null, and a row is known by its place."""
    made = open_source(database, sql="select * from items")
    assert made.columns() == ["id", "text", "score"]
    assert rows(made) == [
        {"id": 9007199254740993, "text": "a", "score": 1.0},
        {"id": -9223372036854775808, "text": "", "score": None},
        {"id": 7, "text": "007", "score": 0.5},
    ]
    assert wheres(made)[2] == "my reviews?#.db, row 3"


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("select missing from items", "the query failed: no such column: missing"),
        ("delete from items", "attempt to write a readonly database"),
        ("create table other (a)", "attempt to write a readonly database"),
        ("select 1; select 2", "one statement at a time"),
        ("-- nothing", "the query returns no rows"),
        ("select id, text as id from items", "repeated column name 'id'"),
        ("select x'00' as picture", "row 1: column 'picture' contains a blob"),
        ("select 9e999 as big", "row 1: column 'big' contains inf, which JSON does not have"),
        ("select 'a' || char(0) as t", "row 1: column 't': a NUL character"),
        ("select cast(x'61ff' as text) as t", "row 1: column 't': not valid utf-8: byte 0xff"),
        (None, "a database needs sql; its tables are: items"),
    ],
)
def test_what_is_refused(database, sql, what):
    """A query that fails, writes or gives what no JSON holds is refused, and nothing is changed."""
    before = database.read_bytes()
    with pytest.raises(InputError) as caught:
        rows(open_source(database, sql=sql))
    assert what in caught.value.message
    assert caught.value.remedy
    assert database.read_bytes() == before


def test_no_rows(database):
    """A query without rows is an input of no records."""
    made = open_source(database, sql="select * from items where 0")
    assert rows(made) == []
    assert made.columns() == ["id", "text", "score"]


def test_files_that_are_no_database(tmp_path):
    """A missing file, another kind of file and a packed one are told apart, and none is made."""
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for a page of one" * 20)
    for name, what in (("none.db", "does not exist"), ("text.db", "file is not a database")):
        with pytest.raises(InputError, match=what):
            open_source(tmp_path / name, sql="select * from items").columns()
    with pytest.raises(InputError, match="compressed"):
        open_source(tmp_path / "a.db.gz", sql="select 1")
    assert [file.name for file in tmp_path.iterdir()] == ["text.db"]


def test_bad_rows_can_be_set_aside(database):
    """A row with a blob is set aside, and the others are read."""
    sql = "select id, case when id = 7 then x'ff' else text end as text from items"
    made = open_source(database, sql=sql, on_bad="skip")
    assert len(rows(made)) == 2
    assert made.skipped == 1
    (line,) = made.quarantine.read_text().splitlines()
    assert json.loads(line)["line"] == 3


def test_records_may_be_taken_by_several_threads_in_turn(database):
    """Each group of records is read in a thread of its own."""
    records, found = iter(open_source(database, sql="select * from items")), []
    for _ in range(3):
        thread = threading.Thread(target=lambda: found.append(next(records)))
        thread.start()
        thread.join()
    assert len(found) == 3
    assert next(records, None) is None
