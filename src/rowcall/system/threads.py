"""Threads for what may block, such as a plain handler or a pipe: it holds neither the event loop nor the exit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

_Task = Callable[[], None]


class Threads:
    """Daemon threads, started as they are needed, at most so many, named after their ``duty``; for one event loop."""

    def __init__(self, most: int, duty: str) -> None:
        self._most = most
        self._duty = duty
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._started = 0
        self._busy = 0

    def resize(self, most: int) -> None:
        """Let so many be started; those that are more idle."""
        self._most = most

    async def run(self, work: Callable[[], Any]) -> Any:
        """What ``work`` gives or raises. When cancelled, the thread is left to end by itself."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = copy_context()

        def task() -> None:
            outcome = context.run(_outcome, work)
            with suppress(RuntimeError):  # the loop is closed, nobody waits any more
                loop.call_soon_threadsafe(self._end, ended, outcome)

        self._begin(task)
        value, error = await ended
        if error is not None:
            raise error
        return value

    def leave(self, work: Callable[[], Any]) -> None:
        """Do something once a thread is free; nobody waits for it."""
        self._tasks.put(partial(_forget, work))

    def close(self) -> None:
        """Let idle threads end, and busy ones when they are done."""
        for _ in range(self._started):
            self._tasks.put(None)

    def _begin(self, task: _Task) -> None:
        self._busy += 1
        self._tasks.put(task)
        if self._busy > self._started and self._started < self._most:
            self._started += 1
            Thread(target=_work_off, args=(self._tasks,), daemon=True, name=f"{self._duty} {self._started}").start()

    def _end(self, ended: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
        self._busy -= 1
        if not ended.done():
            ended.set_result(outcome)


async def apart(work: Callable[[], T], duty: str) -> T:
    """What ``work`` gives or raises, from a thread of its own; when cancelled, that is left to end by itself."""
    threads = Threads(1, duty)
    try:
        result: T = await threads.run(work)
    finally:
        threads.close()
    return result


def _forget(work: Callable[[], Any]) -> None:
    _outcome(work)


def _outcome(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001  it is raised again where it is waited for
        return None, error


def _work_off(tasks: SimpleQueue[_Task | None]) -> None:
    while task := tasks.get():
        task()
