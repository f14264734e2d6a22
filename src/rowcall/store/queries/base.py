"""How a verb is written once for both databases.

A verb is a generator. It yields a ``Statement``, is sent the ``Result``, and returns what the caller asked for. The
driver of each database carries it out in one transaction. A transaction may be repeated from its start, so a verb keeps
nothing outside itself.

The SQL is the part that SQLite and PostgreSQL share, with named parameters (``:kind``). The drivers translate these:

- ``moment()``: the time of the transaction, or of the server.
- ``IN :keys``: equal to one of the values of a list.
- ``EACH(:words) AS asked``: a list as a table with one column, ``value``.
- ``SECONDS(a, b)``: seconds from ``a`` to ``b``; ``SLICE(at)``: whole numbers of ``:width`` seconds since ``:since``.
- ``HAS_CELLS``: the payload of the row of ``jobs`` has the values ``:cells`` in its columns ``:columns``.
- ``UNLOCKED``: the process of the row of ``sessions`` is gone, as shown by its lock.
- ``LOCK_KIND(:kind)``: wait until no other transaction numbers things of this kind.
- ``NOT INDEXED`` and ``INDEXED BY`` guide SQLite alone, ``FOR NO KEY UPDATE`` locks rows in PostgreSQL alone.

Lists are passed as lists, and truth values come back as ``bool`` or as 0 and 1.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rowcall.model.outcome import Settlement

T = TypeVar("T")

Row = tuple[Any, ...]

_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


class Statement:
    """SQL with its parameters."""

    def __init__(self, text: str, **parameters: Any) -> None:
        self.text = text
        self.parameters: Mapping[str, Any] = parameters


@dataclass(frozen=True, slots=True)
class Settle:
    """Settlements to be written within the transaction of a verb, as ``Store.settle`` writes them."""

    settlements: Sequence[Settlement]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows that a statement gave, and the number of rows that it changed."""

    rows: list[Row]
    changed: int

    @property
    def value(self) -> Any:
        """The first value of the first row; None if there is no row."""
        return self.rows[0][0] if self.rows else None


@dataclass(frozen=True, slots=True)
class Access:
    """What the transaction of a verb has to allow for.

    Attributes:
        writes: it changes something; otherwise it reads, and all it reads is of one moment.
        walks: it may read all jobs of a kind, and may take as long as that takes.
        lightly: a power cut may undo it, so that the disk is not waited for.
        by_index: it reaches every row by an index, whatever the statistics of a table that was just filled say.
    """

    writes: bool = False
    walks: bool = False
    lightly: bool = False
    by_index: bool = False


Query = Generator[Statement | Settle, QueryResult, T]
"""A verb under way; ``T`` is what it returns."""


def storable(keys: Iterable[str]) -> list[str]:
    """Leave out keys that no store can hold: PostgreSQL's text has no NUL, and neither database has lone surrogates."""
    return [key for key in keys if not _NOT_STORABLE.search(key)]
