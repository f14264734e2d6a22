"""The second kind of call: one run of the user's own function, the handler."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from rowcall.calls.door import Departure
from rowcall.calls.handlers.call import Call, HandlerResources, SyncCall
from rowcall.calls.handlers.loop_watch import LoopWatch
from rowcall.calls.handlers.plain_json import NotPlain, plain
from rowcall.calls.requests import CallResources
from rowcall.limits.concurrency import RequestSlots
from rowcall.model.job import Job
from rowcall.model.outcome import Classed, Failure, FailureClass, Outcome, Success
from rowcall.providers.handler_endpoint import Endpoint
from rowcall.providers.parse_error_reply import one_line
from rowcall.system.threads import Threads

Function = Callable[[dict[str, Any], Any], Any]
"""``async def f(row, call)`` or ``def f(row, call)``."""

_KEPT_OF_TRACEBACK = 2000
_PACKAGE = str(Path(__file__).parents[2])


class HandlerCaller:
    """Runs a handler for each job: an async handler in the event loop, a plain one in a thread.

    Args:
        function: the handler.
        columns: the columns of the record that it is given; None: all.
        endpoint: the base URL and headers of its requests.
        answers: statuses beyond 2xx that count as answers.
        resources: what the run shares with all calls.
    """

    waits_by_request = True
    records_per_request = 1

    def __init__(
        self,
        function: Function,
        columns: frozenset[str] | None,
        endpoint: Endpoint,
        answers: frozenset[int],
        resources: CallResources,
    ) -> None:
        self._function = function
        self._columns = columns
        self._endpoint = endpoint
        self._concurrency = resources.door.concurrency
        self._shared = HandlerResources(endpoint, answers, resources, RequestSlots(self._concurrency))
        self._threads = Threads(self._concurrency.requests, "handler")
        self._concurrency.subscribe(self._resize_threads)
        self._watch = LoopWatch(function, resources.emit) if is_async(function) else None
        self._run = self._run_in_loop if self._watch else self._run_in_thread

    async def call(self, job: Job, departure: Departure) -> Outcome:
        """Run the handler once."""
        started = perf_counter()
        call = Call(self._shared, job, departure)
        outcome = replace(await self._outcome(job, call, started), usage=call.usage)
        if departure.number is None:
            departure.stay()
        return outcome

    def guess(self, job: Job) -> int:
        """The price of one request; what the handler will send is not known."""
        prices = self._shared.run.prices
        return prices.per_call if prices else 0

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()
        if self._watch:
            self._watch.close()

    def _resize_threads(self) -> None:
        self._threads.resize(self._concurrency.requests)

    async def _outcome(self, job: Job, call: Call, started: float) -> Outcome:
        try:
            value = plain(await self._run(self._row(job), call), "result")
        except NotPlain as error:
            return Failure(FailureClass.RECORD, "result_not_json", one_line(str(error)))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if _is_dropped(error):
                raise
            return self._failure(error)
        last = call.last
        number = last.headers.get("x-request-id") if last else None
        return Success(value, last.status if last else None, number, perf_counter() - started)

    async def _run_in_loop(self, row: dict[str, Any], call: Call) -> Any:
        try:
            return await self._function(row, call)
        finally:
            call.close()

    async def _run_in_thread(self, row: dict[str, Any], call: Call) -> Any:
        synchronous = SyncCall(call, asyncio.get_running_loop())
        try:
            return await self._threads.run(partial(self._function, row, synchronous))
        finally:
            synchronous.close()

    def _row(self, job: Job) -> dict[str, Any]:
        """The columns that the handler is given. Each claim reads the record anew, so the handler may change it."""
        if self._columns is None:
            return job.data
        return {name: value for name, value in job.data.items() if name in self._columns}

    def _failure(self, error: BaseException) -> Failure:
        """The failure that an exception stands for: the first cause that says so decides, otherwise the record pays."""
        known = next((each for each in _chain(error, set()) if isinstance(each, Classed)), None)
        if known:
            return replace(known.failure, message=one_line(self._without_secrets(known.failure.message)))
        story = traceback.TracebackException(type(error), error, _own_part(error.__traceback__))
        first_line = str(story).strip().partition("\n")[0]
        message = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
        body = self._without_secrets("".join(story.format()))[-_KEPT_OF_TRACEBACK:]
        return Failure(FailureClass.RECORD, "handler_error", one_line(self._without_secrets(message)), body=body)

    def _without_secrets(self, text: str) -> str:
        return self._endpoint.without_secrets(text.encode("utf-8", "replace")).decode()


def is_async(function: Function) -> bool:
    """Whether a handler runs in the event loop."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  an object's own method, not whether it has one


def _is_dropped(error: BaseException) -> bool:
    """Whether the call was cancelled from outside; a handler may also cancel something of its own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _chain(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """An exception, its causes and contexts, and the members of exception groups among them, nearest first."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _chain(inner, seen)
    yield from _chain(error.__cause__, seen)
    yield from _chain(error.__context__, seen)


def _own_part(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package that come before the handler's own."""
    while trace and trace.tb_next and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    return trace
