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
"""Seconds for which a cancelled run still waits for its store."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where records go in the store: the batch job, its pass and request, and the batch label."""

    kind: str
    pass_: int
    request: int
    batch: str


class Producer:
    """Reads an input once, from beginning to end.

    Args:
        store: where records go.
        source: where they come from.
        keying: gives them their keys and hashes.
        to: where in the store.
        notice: called when there may be more to claim.
        left_behind: then also bring in pending records of earlier inputs that this one does not have.

    Attributes:
        enqueued: what became of the records so far.
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

    async def run(self) -> None:
        """Read to the end.

        Raises:
            InputError: a line cannot be read; the lines before it are in the store.
        """
        await self._bring_all(iter(self._source))
        if self._error:
            raise self._error
        if self._left_behind:
            await self._bring_left_behind()

    async def _bring_all(self, records: Iterator[Record]) -> None:
        reading, size = (
            Threads(1, "input"),
            FIRST_GROUP,
        )  # a thread: a pipe that stays open must not keep the program from exiting
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
                group.append(self._keying.entry(record))  # noqa: PERF401  the lines before a bad one are kept
        except InputError as error:
            self._error = error
        return group


@asynccontextmanager
async def alive(store: Store, session: int, lease: float) -> AsyncIterator[None]:
    """Keep a session alive during the block, where no worker does: others wait for a session that brings records in.

    Args:
        store: where the session is.
        session: its number.
        lease: seconds of silence after which a session counts as dead.
    """
    beating = asyncio.create_task(_beat(store, session, min(lease / BEATS_A_LEASE, LONGEST_BEAT)))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def leave(store: Store, session: int, kind: object, error: BaseException | None, traceback: object) -> None:
    """End a session. A cancelled run waits 5 s at most; other processes find out later that the session is dead."""
    at_once = isinstance(error, asyncio.CancelledError)
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORDS if at_once else None):
            await store.end_session(session)


async def _beat(store: Store, session: int, every: float) -> None:
    while True:
        with suppress(Busy, Full):  # the next beat may get through
            await store.beat(session)
        await asyncio.sleep(every)


async def _patiently(verb: Callable[[], Awaitable[T]]) -> T:
    """Ask the store until it answers, however long others keep it busy: what was read is not thrown away."""
    while True:
        with suppress(Busy):
            return await verb()
