"""Streams the records of an input into the store, in groups, while calls are already being made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from rowcall.model.errors import Busy, Full, InputError
from rowcall.model.job import Record
from rowcall.sources.base import Source
from rowcall.sources.keys import Keying
from rowcall.store.base import Store
from rowcall.store.liveness import BEATS_A_LEASE, LONGEST_BEAT
from rowcall.store.types import Enqueued, Entry
from rowcall.system.threads import Threads

T = TypeVar("T")

FIRST_GROUP = 100
"""Records in the first transaction: few, so that the first call leaves soon."""
GROUP = 1000
"""Records in each further one."""
LAST_WORDS = 5.0
"""Seconds that a run which was told to leave at once still waits for its store."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where records go in the store."""

    kind: str
    pass_: int
    request: int
    batch: str


class Producer:
    """Reads an input once.

    Args:
        store: where records go.
        source: where they come from.
        keying: how they are known.
        to: where in the store.
        notice: told that there may be more to claim.
        left_behind: pending records of earlier inputs, which this one does not have, are brought in after it.

    Attributes:
        enqueued: what became of the records so far.
        over: the input was read to its end.
    """

    def __init__(
        self,
        store: Store,
        source: Source,
        keying: Keying,
        to: Destination,
        *,
        notice: Callable[[], None],
        left_behind: bool = False,
    ) -> None:
        self._store = store
        self._source = source
        self._keying = keying
        self._to = to
        self._notice = notice
        self._left_behind = left_behind
        self._error: InputError | None = None
        self.enqueued = Enqueued()
        self.over = False

    async def run(self) -> None:
        """Read to the end.

        Raises:
            InputError: a line that cannot be read; what came before it is in the store.
        """
        await self._bring_all(iter(self._source))
        if self._error:
            raise self._error
        if self._left_behind:
            await self._bring_left_behind()
        self.over = True
        self._notice()

    async def _bring_all(self, records: Iterator[Record]) -> None:
        reading, size = Threads(1, "input"), FIRST_GROUP  # a pipe that stays open must not hold the exit
        try:
            while group := await reading.run(partial(self._read, records, size)):
                await self._bring(group)
                size = GROUP
        finally:
            reading.leave(getattr(records, "close", lambda: None))
            reading.close()

    async def _bring(self, group: list[Entry]) -> None:
        to = self._to
        self.enqueued += await _patiently(
            partial(self._store.enqueue, to.kind, group, pass_=to.pass_, request=to.request, batch=to.batch)
        )
        self._notice()

    async def _bring_left_behind(self) -> None:
        last = 0
        while page := await _patiently(
            partial(self._store.left_behind, self._to.kind, self._to.pass_, after=last, limit=GROUP)
        ):
            await self._bring([self._keying.known(job.key, job.payload) for job in page])
            last = page[-1].row

    def _read(self, records: Iterator[Record], size: int) -> list[Entry]:
        group: list[Entry] = []
        if self._error:
            return group
        try:
            for record in islice(records, size):
                group.append(self._keying.entry(record))  # noqa: PERF401  what came before a bad line stays
        except InputError as error:
            self._error = error
        return group


@asynccontextmanager
async def alive(store: Store, session: int, lease: float) -> AsyncIterator[None]:
    """Give signs of life meanwhile, where no worker does: others wait for whoever brings records in.

    ``lease``: seconds of silence after which a session is dead.
    """
    beating = asyncio.create_task(_beat(store, session, min(lease / BEATS_A_LEASE, LONGEST_BEAT)))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def leave(store: Store, session: int, kind: object, error: BaseException | None, traceback: object) -> None:
    """End a session; where the run was cancelled, others see it dead if that takes too long."""
    at_once = isinstance(error, asyncio.CancelledError)
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORDS if at_once else None):
            await store.end_session(session)


async def _beat(store: Store, session: int, every: float) -> None:
    while True:
        with suppress(Busy, Full):  # the next one may get through
            await store.beat(session)
        await asyncio.sleep(every)


async def _patiently(verb: Callable[[], Awaitable[T]]) -> T:
    """Ask the store until it answers: it has waited long already, and what is read is not given up for that."""
    while True:
        with suppress(Busy):
            return await verb()
