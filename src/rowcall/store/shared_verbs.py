"""Makes verbs of a store out of the generators in ``queries``; each database says how one is carried out."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from rowcall.store.base import Reader, Store
from rowcall.store.queries import (
    batch_rollback,
    history,
    import_answers,
    job_counts,
    pruning,
    request_numbers,
    retry_cancel,
    selections,
    stored_jobs,
    stored_runs,
)
from rowcall.store.queries.base import Access, Query

P = ParamSpec("P")
T = TypeVar("T")


def _verb(query: Callable[P, Query[T]], access: Access) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    @wraps(query)
    async def verb(self: SharedReader, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._carry_out(access, lambda: query(*args, **kwargs))

    return verb


def _reads(query: Callable[P, Query[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    return _verb(query, Access())


def _walks(query: Callable[P, Query[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    return _verb(query, Access(walks=True))


def _writes(
    query: Callable[P, Query[T]], *, walks: bool = False, lightly: bool = False, by_index: bool = False
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    return _verb(query, Access(True, walks, lightly, by_index))


class SharedReader(Reader):
    """The verbs of a ``Reader`` that are the same in both databases."""

    kinds = _reads(stored_jobs.kinds)
    job = _reads(stored_jobs.job)
    page = _walks(stored_jobs.page)
    payload = _reads(stored_jobs.payload)
    donor = _reads(stored_jobs.donor)
    tries = _reads(stored_jobs.tries)
    answers = _reads(stored_jobs.answers)
    last_calls = _reads(stored_jobs.last_calls)
    strays = _walks(stored_jobs.strays)
    left_behind = _walks(stored_jobs.left_behind)
    counts = _walks(job_counts.counts)
    spent = _reads(job_counts.spent)
    errors = _walks(job_counts.errors)
    flaws = _walks(job_counts.flaws)
    history = _walks(history.history)
    request_standing = _walks(request_numbers.request_standing)
    select = _walks(selections.select)
    batches = _walks(batch_rollback.batches)
    batch_answers = _walks(batch_rollback.batch_answers)
    prunable = _walks(pruning.prunable)
    last_run = _reads(stored_runs.last_run)
    live_runs = _reads(stored_runs.live_runs)
    runs = _reads(stored_runs.runs)
    recipe = _reads(stored_runs.recipe)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _carry_out(self, access: Access, begin: Callable[[], Query[T]]) -> T:
        """Carry a verb out in one transaction; each try at it calls ``begin`` again."""
        raise NotImplementedError


class SharedStore(SharedReader, Store):
    """The verbs of a ``Store`` that are the same in both databases."""

    request = _writes(request_numbers.request, walks=True)
    adopt = _writes(request_numbers.adopt, walks=True)
    hand_out = _writes(import_answers.hand_out)
    import_answers = _writes(import_answers.import_answers)
    retry = _writes(retry_cancel.retry, walks=True)
    cancel = _writes(retry_cancel.cancel, walks=True)
    rollback = _writes(batch_rollback.rollback, walks=True, by_index=True)
    publish = _writes(stored_runs.publish)
    end_run = _writes(stored_runs.end_run)
    note = _writes(stored_runs.note, lightly=True)
    set = _writes(stored_runs.change_settings)
