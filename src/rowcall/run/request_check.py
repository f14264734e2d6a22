"""What a run must agree upon before a row is read: answers made with another request, and who else is at work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rowcall.config import Config
from rowcall.engine.options import Options
from rowcall.engine.run_parts import RunParts
from rowcall.model.errors import RequestChanged, RowcallError, SchemaMismatch, Unavailable
from rowcall.run.assembly import open_reader
from rowcall.run.recipe import Recipe, recipe_of
from rowcall.store.base import Store
from rowcall.store.types import RequestStanding, Role, Run

REQUEST_HASH = "request_hash"
"""Where a run's settings say what it asks."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was agreed.

    Attributes:
        keep: answers made with another request count for this one from now on.
        known: the request has answers already.
        recipe: how the calls are made, to be kept for workers.
    """

    recipe: Recipe
    keep: bool = False
    known: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """What the store knows of the kind before a row is read.

    Attributes:
        standing: how the request stands to it.
        alive: another run of the kind is at work.
        recipe: how the calls were made; None where that is not known.
    """

    standing: RequestStanding
    alive: bool = False
    recipe: Recipe | None = None


async def agree(config: Config, parts: RunParts, options: Options) -> Agreement:
    """Ask before a changed request makes done records be called again.

    Raises:
        RequestChanged: nobody said what to do.
        RowcallError: others are at work with another request, or there is nothing to work on.
    """
    recipe = await asyncio.to_thread(recipe_of, config, attaches=parts.keying.files is not None)
    known = await _known(config, parts.request_hash)
    standing = known.standing
    _require_alike(config, recipe, known, options.role)
    if known.alive and not standing.latest:
        raise _another_request(config.name)
    if options.role is Role.WORK:
        _require_records(config, standing, options)
    if options.role is Role.WORK or standing.latest or not standing.done_under_others:
        return Agreement(recipe, known=standing.done > 0)
    choice = options.if_changed or (options.ask(standing) if options.ask else "stop")
    if choice == "stop":
        raise _changed(config.name, standing)
    return Agreement(recipe, keep=choice == "keep", known=standing.done > 0)


async def require_one_request(store: Store, kind: str, run: Run, request_hash: str) -> None:
    """See once more, for a run that has begun, that it asks what those ask that it joined: they may have begun since.

    Raises:
        RowcallError: it does not; the run is ended.
    """
    others = (other for other in await store.live_runs(kind) if other.id != run.id)
    if all(other.settings.get(REQUEST_HASH, request_hash) == request_hash for other in others):
        return
    refused = _another_request(kind)
    await store.end_run(run, "error", {"message": refused.message})
    raise refused


async def _known(config: Config, request_hash: str) -> _Known:
    try:
        reader = await open_reader(config)
    except (Unavailable, SchemaMismatch):  # not made yet, or half made; else opening it to write says the same
        return _Known(RequestStanding(None, latest=True, done=0, done_under_others=0))
    async with reader:
        standing = await reader.request_standing(config.name, request_hash)
        kept = await reader.recipe(config.name)
        alive = bool(await reader.live_runs(config.name))
        return _Known(standing, alive, Recipe.of(kept) if kept else None)


def _require_alike(config: Config, recipe: Recipe, known: _Known, role: Role) -> None:
    """See that workers call as their records want it; where some are there, that no record comes that wants another."""
    name, parts = config.name, recipe.unlike(known.recipe) if known.recipe else []
    if parts and role is Role.WORK:
        what = f"{name}: other than what its records were brought in with: {', '.join(parts)}"
        raise RowcallError(what, remedy="start it with the same files, or with --store and no config; or enqueue anew")
    if parts and role is Role.ENQUEUE and known.alive:
        what = f"{name}: others are at work, who call in another way: {', '.join(parts)}"
        raise RowcallError(what, remedy="Let them end, or stop them; then bring the records in.")


def _require_records(config: Config, standing: RequestStanding, options: Options) -> None:
    """See that there is something to work on, and that it asks what this config asks."""
    if not standing.latest:
        what = f"{config.name}: its records were brought in for another request than this one"
        raise RowcallError(what, remedy="start with the config that they were brought in with, or bring them in anew")
    if standing.number is None and not options.wait:
        what = f"{config.name}: {config.store_place} holds no records of it"
        raise RowcallError(what, remedy="rowcall enqueue brings them in; --wait waits for them")


def _another_request(name: str) -> RowcallError:
    return RowcallError(
        f"{name}: another run is at work with another request",
        remedy="Let it end, or stop it with Ctrl+C in its terminal; then this one can go on.",
    )


def _changed(name: str, standing: RequestStanding) -> RequestChanged:
    return RequestChanged(
        f"{name}: the request has changed since {standing.done_under_others:,} records were done",
        done=standing.done_under_others,
        remedy="--if-changed keep   their answers stand\n  --if-changed redo   they are called again",
    )
