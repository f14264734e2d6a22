"""What a run must agree upon before a row is read: answers made with another request, and who else is at work."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.config import Config
from rowcall.errors import RequestChanged, RowcallError, SchemaMismatch, Unavailable
from rowcall.parts import open_reader
from rowcall.running import Options
from rowcall.store.facts import RequestStanding, Role


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was agreed.

    Attributes:
        keep: answers made with another request count for this one from now on.
        known: the request has answers already.
    """

    keep: bool = False
    known: bool = False


async def agree(config: Config, request_hash: str, options: Options) -> Agreement:
    """Ask before a changed request makes done records be called again.

    Raises:
        RequestChanged: nobody said what to do.
        RowcallError: others are at work with another request, or there is nothing to work on.
    """
    standing, alive = await _standing(config, request_hash)
    if alive and not standing.latest:
        raise _another_request(config.name)
    if options.role is Role.WORK:
        return _to_work(config, standing, options)
    known = standing.done > 0
    if standing.latest or not standing.done_under_others:
        return Agreement(known=known)
    choice = options.if_changed or (options.ask(standing) if options.ask else "stop")
    if choice == "stop":
        raise _changed(config.name, standing)
    return Agreement(keep=choice == "keep", known=known)


async def _standing(config: Config, request_hash: str) -> tuple[RequestStanding, bool]:
    """How the request stands to the store, and whether another run of the kind is at work."""
    try:
        reader = await open_reader(config)
    except (Unavailable, SchemaMismatch):  # not made yet, or half made; else opening it to write says the same
        return RequestStanding(None, latest=True, done=0, done_under_others=0), False
    async with reader:
        standing = await reader.request_standing(config.name, request_hash)
        return standing, bool(await reader.live_runs(config.name))


def _to_work(config: Config, standing: RequestStanding, options: Options) -> Agreement:
    """See that there is something to work on, and that it asks what this config asks."""
    if not standing.latest:
        what = f"{config.name}: its records were brought in for another request than this one"
        raise RowcallError(what, remedy="start with the config that they were brought in with, or bring them in anew")
    if standing.number is None and not options.wait:
        what = f"{config.name}: {config.store_place} holds no records of it"
        raise RowcallError(what, remedy="rowcall enqueue brings them in; --wait waits for them")
    return Agreement(known=standing.done > 0)


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
