"""Daemon threads for work that may block, such as a handler or reading a pipe.

The standard library's thread pools wait for their threads when the process exits. A handler that hangs, or a pipe that
stays open, would then keep the process alive.
"""

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
    """A pool of daemon threads for one event loop, started as they are needed.

    Args:
        most: the largest number of threads.
        duty: what they do; their names begin with it.
    """

    def __init__(self, most: int, duty: str) -> None:
        self._most = most
        self._duty = duty
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._started = 0
        self._busy = 0

    def resize(self, most: int) -> None:
        """Change the largest number of threads. Threads beyond it are not ended."""
        self._most = most

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run ``work`` in a thread and return its result. If cancelled, the thread is left to finish by itself."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = copy_context()

        def task() -> None:
            outcome = context.run(_outcome, work)
            with suppress(RuntimeError):  # the loop is closed: nobody waits for the result
                loop.call_soon_threadsafe(self._end, ended, outcome)

        self._begin(task)
        value, error = await ended
        if error is not None:
            raise error
        return value

    def leave(self, work: Callable[[], Any]) -> None:
        """Run ``work`` once a thread is free, without waiting for it."""
        self._tasks.put(partial(_forget, work))

    def close(self) -> None:
        """End the threads: idle ones now, busy ones when they are done."""
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


async def run_in_own_thread(work: Callable[[], T], duty: str) -> T:
    """Run ``work`` in a thread of its own and return its result. If cancelled, the thread finishes by itself."""
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
    except BaseException as error:  # noqa: BLE001  raised again by ``run``
        return None, error


def _work_off(tasks: SimpleQueue[_Task | None]) -> None:
    while task := tasks.get():
        task()
