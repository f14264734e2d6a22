"""Writes the requests of unfinished records as files for a provider's batch API.

Sources: OpenAI's Batch API guide (at most 50,000 requests or 200 MB per file), Anthropic's Message Batches reference
(at most 100,000 requests or 256 MB; each line is one item of ``requests``; a custom_id is 1 to 64 letters, digits,
``-`` and ``_``).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from rowcall.config import Config, Reference
from rowcall.engine.options import Options
from rowcall.model import json_values
from rowcall.model.errors import OutputError, TemplateError
from rowcall.model.job import Status
from rowcall.output import destination
from rowcall.output.join_answers import Join, JoinedRow
from rowcall.providers.base import CallContext, Provider
from rowcall.run.make_calls import provider_of
from rowcall.run.pipeline import Pipeline
from rowcall.system.disk_index import DiskIndex

BatchFormat = Literal["openai-batch", "anthropic-batch"]


@dataclass(frozen=True, slots=True)
class BatchShape:
    """A provider's most requests and bytes per file, and a function that makes a line of key, URL path and body."""

    requests: int
    size: int
    line: Callable[[str, str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class WrittenRequests:
    """The files that were written and the number of requests in them."""

    files: tuple[Path, ...]
    requests: int


def _openai_line(key: str, path: str, body: Any) -> dict[str, Any]:
    url = path[path.rindex("/v1/") :] if "/v1/" in path else path
    return {"custom_id": key, "method": "POST", "url": url, "body": body}


def _anthropic_line(key: str, path: str, body: Any) -> dict[str, Any]:
    if not path.endswith("/messages"):
        raise OutputError(f"anthropic-batch is for /v1/messages; these requests go to {path}", remedy="openai-batch")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", key, re.ASCII):
        what = f"the key {key!r} cannot be a custom_id there: 1 to 64 letters, digits, - and _"
        raise OutputError(what, remedy="name another column in [input] key, or leave it out: the key is then a hash")
    return {"custom_id": key, "params": body}


SHAPES: Mapping[BatchFormat, BatchShape] = {
    "openai-batch": BatchShape(50_000, 200_000_000, _openai_line),
    "anthropic-batch": BatchShape(100_000, 256_000_000, _anthropic_line),
}


async def write_requests(
    config: Config, path: Path, shape: BatchShape, *, only: Status = Status.PENDING, options: Options | None = None
) -> WrittenRequests:
    """Enqueue the input and write a request for each record of one status. No API key is needed.

    Requests that do not fit into one file go into further files, ``name-2.jsonl`` and so on. Either all files are
    written or none.

    Args:
        config: the config of the batch job.
        path: the (first) file; ``-`` is stdout.
        shape: the provider's limits and the form of a line.
        only: the status of the records to write. Records that a run is calling are never written.
        options: what to do if the request has changed.

    Raises:
        OutputError: a file cannot be written, or a request cannot be part of a batch.
        RequestChanged, InputError, ConfigError, StoreError: for the same reasons as in a run.
    """
    marks = _SecretMarks()
    masked = config.masked(marks)
    provider = provider_of(masked)
    async with AsyncExitStack() as stack:
        enqueued = await Pipeline(masked).enqueue(stack, options or Options())
        store, parts = enqueued.store, enqueued.parts
        files = stack.enter_context(_NumberedFiles(path, shape))
        once = stack.enter_context(DiskIndex())
        async for group in Join(store, config.name, parts.source, parts.keying, {}).groups():
            wanted = [
                each for each in group if each.answer and each.answer.status is only and once.note(each.key) is None
            ]
            for each in wanted:
                files.write(_request(each, provider, marks, shape))
            await store.hand_out(config.name, [each.key for each in wanted])
        return WrittenRequests(files.paths, files.requests)


def _request(joined: JoinedRow, provider: Provider, marks: _SecretMarks, shape: BatchShape) -> bytes:
    where = joined.record.where
    try:
        request = provider.build(joined.record.data, CallContext(joined.key))
    except TemplateError as error:
        raise OutputError(f"{where}: {error.message}", remedy=error.remedy) from error
    marks.refuse_in(request.content)
    path = request.url.path
    if request.method != "POST" or not isinstance(body := _json(request.content), dict):
        raise OutputError(f"{where}: {request.method} {path} has no JSON body; a batch takes only POSTs with one")
    if body.get("stream"):
        raise OutputError(f"{where}: stream: true cannot be answered in a file", remedy="remove it from [request.body]")
    return json_values.dumps(shape.line(joined.key, path, body)) + b"\n"


def _json(content: bytes) -> Any:
    try:
        return json_values.loads(content)
    except ValueError:
        return None


@dataclass(slots=True)
class _SecretMarks:
    """Replaces every secret by a random mark, so that no secret gets into a file and a mark in a body is found."""

    by_mark: dict[bytes, str] = field(default_factory=dict)

    def __call__(self, reference: Reference) -> str:
        mark = f"SECRET-{secrets.token_hex(8)}"
        self.by_mark[mark.encode()] = reference.name
        return mark

    def refuse_in(self, content: bytes) -> None:
        """Check that a body contains no secret.

        Raises:
            OutputError: the body contains one; the message names it.
        """
        found = next((name for mark, name in self.by_mark.items() if mark in content), None)
        if found:
            what = f"the body of the requests holds the secret {found}, which anyone who reads the file would see"
            raise OutputError(what, remedy="put it into a header: the provider's batch API takes its own key")


class _NumberedFiles:
    """Writes lines into as many files as needed. All files get their final names at once, when the block succeeds."""

    def __init__(self, path: Path, shape: BatchShape) -> None:
        self._path = path
        self._shape = shape
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self._in_file = self._bytes = 0
        self.paths: tuple[Path, ...] = ()
        self.requests = 0

    def __enter__(self) -> _NumberedFiles:
        self._next()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.__exit__(*exc)

    def write(self, line: bytes) -> None:
        """Write a line."""
        if self._in_file and (self._in_file >= self._shape.requests or self._bytes + len(line) > self._shape.size):
            self._next()
        assert self._file is not None
        self._file.write(line)
        self._in_file += 1
        self._bytes += len(line)
        self.requests += 1

    def _next(self) -> None:
        self._file = self._stack.enter_context(_opened(self._path, len(self.paths) + 1))
        self.paths += (_numbered(self._path, len(self.paths) + 1),)
        self._in_file = self._bytes = 0


def _opened(path: Path, number: int) -> AbstractContextManager[BinaryIO]:
    if number > 1 and str(path) == "-":
        raise OutputError(
            "the requests do not fit into one batch file", remedy="write them with -o FILE: further files are numbered"
        )
    return destination(_numbered(path, number))


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
