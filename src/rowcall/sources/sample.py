"""Takes a random sample of an input that is the same each time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from hashlib import blake2b

from rowcall.model.job import Record
from rowcall.sources.base import Source


class Sample:
    """The ``number`` records whose keys have the lowest hashes, in the order of the input.

    Each iteration first reads the whole input to find them. A larger sample contains every smaller one, and adding or
    removing a record of the input changes at most one record of the sample.

    Args:
        source: the input, which must be rereadable.
        key: returns the key of a record. A record for which it raises ValueError is left out.
        number: the size of the sample.
    """

    rereadable = True

    def __init__(self, source: Source, key: Callable[[Record], str], number: int) -> None:
        self._source = source
        self._key = key
        self._number = number
        self.name = source.name
        self.uniform = source.uniform
        self.skipped = 0
        self.quarantine = source.quarantine

    def columns(self) -> list[str] | None:
        """Return the columns of the input."""
        found = self._source.columns()
        self.uniform = self._source.uniform
        return found

    def __iter__(self) -> Iterator[Record]:
        chosen = self._lowest()
        yield from (record for record in self._source if self._hash(record) in chosen)
        self.skipped = self._source.skipped

    def _lowest(self) -> set[int]:
        """Return the lowest hashes, each key counted once."""
        heap: list[int] = []  # negated, because heapq finds the smallest, and the largest is the one to replace
        kept: set[int] = set()
        for record in self._source:
            number = self._hash(record)
            if number is None or number in kept or (len(heap) == self._number and number > -heap[0]):
                continue
            kept.add(number)
            heapq.heappush(heap, -number)
            if len(heap) > self._number:
                kept.discard(-heapq.heappop(heap))
        return kept

    def _hash(self, record: Record) -> int | None:
        try:
            return int.from_bytes(blake2b(self._key(record).encode(), digest_size=8).digest())
        except ValueError:
            return None
