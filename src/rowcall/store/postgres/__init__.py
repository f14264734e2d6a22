"""The store in PostgreSQL: the same job on as many machines as are wanted."""

from rowcall.store.postgres.reader import PostgresReader
from rowcall.store.postgres.store import PostgresStore

__all__ = ["PostgresReader", "PostgresStore"]
