"""Runs a coroutine on an event loop in a thread, for programs without a loop and for notebooks, whose loop is busy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def run_in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` on a new event loop in a new thread, and return its result or raise its exception.

    Ctrl+C here cancels the work and waits until it has ended.
    """
    return _LoopThread(work).wait()


class _LoopThread(Thread, Generic[T]):
    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        super().__init__(name="rowcall", daemon=True)
        self._work = work
        self._begun = Event()
        self._result: Future[T] = Future()
        self._task: asyncio.Task[T] | None = None

    def run(self) -> None:
        try:
            self._result.set_result(asyncio.run(self._main()))
        except BaseException as error:  # noqa: BLE001  ``wait`` raises it again
            self._result.set_exception(error)

    async def _main(self) -> T:
        self._task = asyncio.current_task()
        self._begun.set()
        return await self._work()

    def wait(self) -> T:
        self.start()
        try:
            return self._result.result()
        except BaseException:
            if not self._result.done():
                self._cancel()
            raise

    def _cancel(self) -> None:
        self._begun.wait()
        if self._task:
            with suppress(RuntimeError):  # the loop is already closed: the work has ended
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        self.join()
