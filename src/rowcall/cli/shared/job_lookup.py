"""Finds a batch job: its store, its kind, and a batch within it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rowcall.cli.shared.job_address import JobAddress
from rowcall.model.errors import NothingYet, RowcallError
from rowcall.model.store_location import StoreLocation
from rowcall.store.base import Reader
from rowcall.store.open_at import open_reader

_BATCHES_SHOWN = 20


def find_store(address: JobAddress) -> tuple[StoreLocation, str | None]:
    """Return the store, and the name of the job in it if the user or the config names one."""
    if address.store is not None:
        return address.store, address.name
    from rowcall.config import load

    loaded = load(address.config)
    return loaded.store_location, address.name or loaded.name


@asynccontextmanager
async def read_job(address: JobAddress) -> AsyncIterator[tuple[Reader, str]]:
    """Open the store of a job for reading; yields the reader and the job's kind.

    Raises:
        RowcallError: there is no such store or job, or the store holds several and none was named.
    """
    store, name = find_store(address)
    async with await open_reader(store) as reader:
        yield reader, only_kind(await reader.kinds(), name, store)


def only_kind(kinds: list[str], wanted: str | None, store: StoreLocation) -> str:
    """Return the kind that is meant, out of those in a store.

    Raises:
        NothingYet: there is none, or none of that name.
        RowcallError: there are several and none was named.
    """
    if wanted in kinds or (wanted is not None and not kinds):
        return wanted
    if wanted is not None:
        raise NothingYet(f"{store}: there is no batch job {wanted!r}", remedy=f"the store holds: {', '.join(kinds)}")
    if len(kinds) == 1:
        return kinds[0]
    if not kinds:
        raise NothingYet(f"{store}: the store holds no batch job yet", remedy="start one with: rowcall run")
    raise RowcallError(
        f"{store}: the store holds several batch jobs", remedy=f"name one of them with --name: {', '.join(kinds)}"
    )


async def require_batch(reader: Reader, kind: str, batch: str) -> None:
    """Refuse a batch that the store does not know.

    Raises:
        RowcallError: names the batches that the store knows.
    """
    known = await reader.batches(kind)
    if batch not in known:
        shown = ", ".join(known[:_BATCHES_SHOWN]) + (", ..." if len(known) > _BATCHES_SHOWN else "")
        raise RowcallError(f"{kind}: there is no batch {batch!r}", remedy=f"the batches are: {shown or 'none yet'}")
