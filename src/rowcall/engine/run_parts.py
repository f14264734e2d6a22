"""The parts of a run that its config names: input, calls, output columns, network."""

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
    """What a run and an export share, and what makes the calls.

    Attributes:
        source: the input.
        make_caller: makes what makes the calls of a run.
        keying: gives records their keys and hashes.
        columns: the new columns of the output.
        request_hash: the hash of the request as written.
        target: scheme, host and port of the API; rate limits and rests belong to it.
        network: how the API is reached.
        prices: what a call costs; None where that is not known.
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
        """Return the key of a job's call: the same over retries, restarts and processes, another for another request.

        It also changes after a rejected answer: an API that keeps answers by this key would give the same one again.
        """
        key = call_key(self.request_hash, job.key, job.input_hash)
        return f"{key}-{len(job.rejected)}" if job.rejected else key


@dataclass(frozen=True, slots=True)
class Calls:
    """How calls are made.

    Attributes:
        columns: the columns of a record that they use; None: all.
        trees: the syntax trees of their templates.
        make_caller: makes what makes the calls of a run.
        target: scheme, host and port of the API.
        files: fingerprints of attached files; None where no files are attached.
    """

    columns: frozenset[str] | None
    trees: tuple[TemplateTree, ...]
    make_caller: Callable[[CallResources], Caller]
    target: str
    files: FilePrints | None = None


def call_key(request_hash: str, key: str, input_hash: str) -> str:
    """Return the key of a record's call, 32 hex digits."""
    told = f"{request_hash}\x00{key}\x00{input_hash}"
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
