"""Checks, before a row is read, whether this run's request fits what the store holds and what other runs are doing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rowcall.config import Config
from rowcall.engine.options import Options
from rowcall.engine.run_parts import RunParts
from rowcall.model.errors import RequestChanged, RowcallError, SchemaMismatch, Unavailable
from rowcall.run.job_store import open_reader
from rowcall.run.recipe import Recipe, recipe_of
from rowcall.store.base import Store
from rowcall.store.types import RequestStanding, Role, Run

REQUEST_HASH = "request_hash"
"""The key in a run's stored settings that holds the hash of its request."""


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """The result of the check.

    Attributes:
        recipe: how the calls are made; stored for the workers.
        keep: answers made with the earlier request count for this one from now on.
        known: the request already has answers.
    """

    recipe: Recipe
    keep: bool = False
    known: bool = False


@dataclass(frozen=True, slots=True)
class _StoredRequest:
    """What the store says about the kind's request.

    Attributes:
        standing: whether the request is the latest one, and how many records are done under it or under others.
        alive: another run of the kind is at work.
        recipe: the recipe stored with the records; None if there is none.
    """

    standing: RequestStanding
    alive: bool = False
    recipe: Recipe | None = None


async def check_request(config: Config, parts: RunParts, options: Options) -> CheckedRequest:
    """Compare the request with the store, and ask before a changed request causes finished records to be called again.

    Raises:
        RequestChanged: the request has changed and the options do not say what to do.
        RowcallError: another run is at work with another request, or a worker has nothing to work on.
    """
    recipe = await asyncio.to_thread(recipe_of, config, attaches=parts.keying.files is not None)
    stored = await _stored_request(config, parts.request_hash)
    standing = stored.standing
    _require_same_recipe(config, recipe, stored, options.role)
    if stored.alive and not standing.latest:
        raise _another_request(config.name)
    if options.role is Role.WORK:
        _require_records(config, standing, options)
    if options.role is Role.WORK or standing.latest or not standing.done_under_others:
        return CheckedRequest(recipe, known=standing.done > 0)
    choice = options.if_changed or (options.ask(standing) if options.ask else "stop")
    if choice == "stop":
        raise RequestChanged(
            f"{config.name}: the request has changed since {standing.done_under_others:,} records were done",
            done=standing.done_under_others,
            remedy="--if-changed keep   keep the answers\n  --if-changed redo   call the API for these records again",
        )
    return CheckedRequest(recipe, keep=choice == "keep", known=standing.done > 0)


async def require_one_request(store: Store, kind: str, run: Run, request_hash: str) -> None:
    """Check again, once the run is in the store, that all live runs of the kind use the same request.

    The first check cannot see a run that starts at the same moment.

    Raises:
        RowcallError: another run uses another request. This run is ended in the store.
    """
    others = (other for other in await store.live_runs(kind) if other.id != run.id)
    if all(other.settings.get(REQUEST_HASH, request_hash) == request_hash for other in others):
        return
    refused = _another_request(kind)
    await store.end_run(run, "error", {"message": refused.message})
    raise refused


async def _stored_request(config: Config, request_hash: str) -> _StoredRequest:
    try:
        reader = await open_reader(config)
    except (
        Unavailable,
        SchemaMismatch,
    ):  # the store does not exist yet; other causes are raised when it is opened
        return _StoredRequest(RequestStanding(None, latest=True, done=0, done_under_others=0))
    async with reader:
        standing = await reader.request_standing(config.name, request_hash)
        stored = await reader.recipe(config.name)
        alive = bool(await reader.live_runs(config.name))
        return _StoredRequest(standing, alive, Recipe.of(stored) if stored else None)


def _require_same_recipe(config: Config, recipe: Recipe, stored: _StoredRequest, role: Role) -> None:
    """Check that a worker calls as its records require, and that no records with another recipe join live workers."""
    name, parts = config.name, recipe.unlike(stored.recipe) if stored.recipe else []
    if parts and role is Role.WORK:
        what = f"{name}: this worker differs from the config its records were enqueued with: {', '.join(parts)}"
        remedy = "start it with the same files, or with --store and no config; or enqueue the records again"
        raise RowcallError(what, remedy=remedy)
    if parts and role is Role.ENQUEUE and stored.alive:
        what = f"{name}: live workers were started with another config; it differs in: {', '.join(parts)}"
        raise RowcallError(what, remedy="Wait for them to end, or stop them; then enqueue the records.")


def _require_records(config: Config, standing: RequestStanding, options: Options) -> None:
    """Check that there are records for a worker, and that they were enqueued for this request."""
    if not standing.latest:
        what = f"{config.name}: its records were enqueued with another request than this one"
        raise RowcallError(what, remedy="start with the config they were enqueued with, or enqueue them again")
    if standing.number is None and not options.wait:
        what = f"{config.name}: {config.store_location} holds no records of it"
        raise RowcallError(what, remedy="rowcall enqueue adds them; --wait waits for them")


def _another_request(name: str) -> RowcallError:
    return RowcallError(
        f"{name}: another run is at work with another request",
        remedy="Wait for it to end, or stop it with Ctrl+C in its terminal; then start this one again.",
    )
