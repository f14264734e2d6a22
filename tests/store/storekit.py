"""What the tests of the stores share: a clock to be moved, and a store with a run begun on it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from rowcall.model.job import Job
from rowcall.model.outcome import Action, Failure, FailureClass, Settlement, Success, Usage
from rowcall.store.base import Store
from rowcall.store.types import Enqueued, Entry, Run

START = 1_700_000_000.0


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self._now = START
        self._show: Callable[[float], object] = lambda seconds: None

    def __call__(self) -> float:
        return self._now

    @property
    def now(self) -> float:
        return self._now

    @now.setter
    def now(self, seconds: float) -> None:
        self._now = seconds
        self._show(seconds)

    def move(self, seconds: float) -> None:
        self.now += seconds

    def shown_by(self, show: Callable[[float], object]) -> None:
        """Tell somebody the time, now and whenever it moves."""
        self._show = show
        show(self._now)


def entry(key: str, text: str = "", where: str | None = None, payload: str | None = None) -> Entry:
    """A record whose hash and payload follow from ``text``."""
    hash_ = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Entry(key, hash_, payload or f'{{"id":"{key}","text":"{text}"}}', where or f"in.csv:{key}")


def success(value: Any = "yes", **more: Any) -> Success:
    return Success(value, 200, "req-1", 0.25, **more)


def failure(reason: str = "http_500", cls: FailureClass = FailureClass.SERVER, **more: Any) -> Failure:
    return Failure(cls, reason, f"it said {reason}", **more)


NOTHING = Usage()
USAGE = Usage(input=10, output=5, cached=3, reasoning=2)


class Desk:
    """A store with a session, a run and a request of one kind."""

    def __init__(self, store: Store, clock: Clock, open_other: Callable[[], Awaitable[Store]], kind: str = "k") -> None:
        self.store, self.clock, self.kind, self._open_other = store, clock, kind, open_other
        self.session = self.request = 0
        self.run: Run

    @property
    def pass_(self) -> int:
        return self.run.pass_

    async def sit(self, request: str = "ask") -> Desk:
        self.session = await self.store.begin_session()
        self.request = await self.store.request(self.kind, request)
        await self.next_pass()
        return self

    async def next_pass(self) -> None:
        self.run = await self.store.begin_run(self.session, self.kind, {})

    async def other(self) -> Desk:
        """A second process's desk at the same store; ``vanish`` lets it crash."""
        return await Desk(await self._open_other(), self.clock, self._open_other, self.kind).sit()

    async def vanish(self) -> None:
        await self.store.close()

    async def bring(self, *entries: Entry | str, batch: str = "b1") -> Enqueued:
        records = [each if isinstance(each, Entry) else entry(each) for each in entries]
        return await self.store.enqueue(self.kind, records, pass_=self.pass_, request=self.request, batch=batch)

    async def claim(self, limit: int = 100, **more: Any) -> list[Job]:
        return await self.store.claim(self.session, self.kind, self.pass_, limit, **more)

    async def one(self) -> Job:
        (job,) = await self.claim(1)
        return job

    async def keys(self, limit: int = 100, **more: Any) -> list[str]:
        return [job.key for job in await self.claim(limit, **more)]

    async def done(self, *jobs: Job, value: Any = "yes", usage: Usage = NOTHING) -> list[Settlement]:
        return await self._settle(jobs, Action.DONE, None, success(value, usage=usage))

    async def retry(self, *jobs: Job, wait: float = 0.0, outcome: Failure | None = None) -> list[Settlement]:
        return await self._settle(jobs, Action.RETRY, wait, outcome or failure())

    async def fail(self, *jobs: Job, outcome: Failure | None = None) -> list[Settlement]:
        return await self._settle(jobs, Action.FAIL, None, outcome or failure())

    async def release(self, *jobs: Job, wait: float | None = None, outcome: Failure | None = None) -> list[Settlement]:
        return await self._settle(jobs, Action.RELEASE, wait, outcome)

    async def _settle(self, jobs: Any, action: Action, wait: float | None, outcome: Any) -> list[Settlement]:
        return await self.store.settle([Settlement(job, action, wait, outcome) for job in jobs])

    async def row(self, key: str) -> Any:
        found = await self.store.job(self.kind, key)
        assert found is not None
        return found

    async def answer(self, key: str) -> Any:
        return (await self.store.answers(self.kind, [key]))[key].value

    async def statuses(self) -> dict[str, str]:
        return {row.key: row.status.value for row in await self.store.page(self.kind)}
