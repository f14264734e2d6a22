"""The store in one SQLite file."""

from rowcall.store.sqlite.reader import SQLiteReader
from rowcall.store.sqlite.store import SQLiteStore

__all__ = ["SQLiteReader", "SQLiteStore"]
