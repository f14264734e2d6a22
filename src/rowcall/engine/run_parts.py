"""The parts of a run that its config names: input, calls, output columns, and the way to the API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from rowcall.calls.requests import Caller, CallResources
from rowcall.client.network import Network
from rowcall.model.job import Job
from rowcall.model.prices import Prices
from rowcall.output.join_answers import Columns
from rowcall.sources.base import Source
from rowcall.sources.keys import FilePrints, Keying
from rowcall.templates.compile import TemplateTree


@dataclass(frozen=True, slots=True)
class RunParts:
    """What joins an input and its answers, the same for a run and for an export; and what makes the calls.

    ``target`` is whom limits and rests belong to: scheme, host and port.
    """

    source: Source
    make_caller: Callable[[CallResources], Caller]
    keying: Keying
    columns: Columns
    request_hash: str
    target: str
    network: Network
    prices: Prices | None = None

    def call_key(self, job: Job) -> str:
        """The key of a job's call: the same over tries, restarts and processes, another for another request.

        After a rejected answer it is another one too: who keeps answers by their key would give the same again.
        """
        key = call_key(self.request_hash, job.key, job.input_hash)
        return f"{key}-{len(job.rejected)}" if job.rejected else key


@dataclass(frozen=True, slots=True)
class Calls:
    """How calls are made: what they use of a record, their templates, what makes them on a wire, and who is called."""

    columns: frozenset[str] | None
    trees: tuple[TemplateTree, ...]
    make_caller: Callable[[CallResources], Caller]
    target: str
    files: FilePrints | None = None


def call_key(request_hash: str, key: str, input_hash: str) -> str:
    """The key of a record's call, 32 hex digits."""
    told = f"{request_hash}\x00{key}\x00{input_hash}"
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
