"""A sample of an input: so many records, chosen by chance but the same ones each time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from hashlib import blake2b

from rowcall.model.job import Record
from rowcall.sources.base import Source


class Sample:
    """The ``number`` records whose keys have the lowest hashes, in the order of the input.

    The input is read once more for it, before the first record. A larger sample holds a smaller one, and a record
    that is added or taken away changes the sample by one record at most.

    Args:
        source: the input; it must be one that can be read again.
        key: a record's key; ValueError where it has none, which leaves it out.
        number: how many.
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
        """The columns of the input."""
        found = self._source.columns()
        self.uniform = self._source.uniform
        return found

    def __iter__(self) -> Iterator[Record]:
        chosen = self._lowest()
        yield from (record for record in self._source if self._hash(record) in chosen)
        self.skipped = self._source.skipped

    def _lowest(self) -> set[int]:
        """The lowest hashes, of each key once."""
        heap: list[int] = []  # negated, so that the highest of the lowest is at hand
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
