"""What is still to do as a file for a provider's own batch API.

Sources: OpenAI's Batch API guide (50,000 requests or 200 MB a file), Anthropic's Message Batches reference (100,000
requests or 256 MB; each line is one item of ``requests``; a custom_id is 1 to 64 letters, digits, ``-`` and ``_``).
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
    """What a provider takes: most requests and bytes of a file, and a line from key, URL path and body."""

    requests: int
    size: int
    line: Callable[[str, str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The files that were written, with all their requests."""

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


async def hand_out(
    config: Config, path: Path, shape: BatchShape, *, only: Status = Status.PENDING, options: Options | None = None
) -> HandedOut:
    """Bring the input in, and write a request for each record of a status; no key is needed.

    What does not fit into one file goes into further ones, ``name-2.jsonl`` and so on; all of them are there, or none.

    Args:
        config: says what is sent.
        path: the (first) file; ``-`` is stdout.
        shape: of the lines.
        only: the status of the records; those that a run is calling are left out.
        options: for a request that has changed.

    Raises:
        OutputError: a file cannot be written, or a request is none for a batch.
        RequestChanged, InputError, ConfigError, StoreError: as a run.
    """
    marks = _Marks()
    masked = config.masked(marks)
    provider = provider_of(masked)
    async with AsyncExitStack() as stack:
        brought = await Pipeline(masked).bring_in(stack, options or Options())
        store, parts = brought.store, brought.parts
        files = stack.enter_context(_Files(path, shape))
        once = stack.enter_context(DiskIndex())
        async for group in Join(store, config.name, parts.source, parts.keying, {}).groups():
            wanted = [each for each in group if _is(each, only) and once.note(each.key) is None]
            for each in wanted:
                files.write(_request(each, provider, marks, shape))
            await store.hand_out(config.name, [each.key for each in wanted])
        return HandedOut(files.paths, files.requests)


def _is(joined: JoinedRow, status: Status) -> bool:
    return joined.answer is not None and joined.answer.status is status


def _request(joined: JoinedRow, provider: Provider, marks: _Marks, shape: BatchShape) -> bytes:
    where = joined.record.where
    try:
        request = provider.build(joined.record.data, CallContext(joined.key))
    except TemplateError as error:
        raise OutputError(f"{where}: {error.message}", remedy=error.remedy) from error
    marks.refuse_in(request.content)
    path = request.url.path
    if request.method != "POST" or not isinstance(body := _json(request.content), dict):
        raise OutputError(f"{where}: {request.method} {path} has no JSON body; a batch holds POSTs with one")
    if body.get("stream"):
        raise OutputError(f"{where}: stream: true cannot be answered in a file", remedy="take it out of [request.body]")
    return json_values.dumps(shape.line(joined.key, path, body)) + b"\n"


def _json(content: bytes) -> Any:
    try:
        return json_values.loads(content)
    except ValueError:
        return None


@dataclass(slots=True)
class _Marks:
    """Stands in for secrets, so that none can come into a file."""

    by_mark: dict[bytes, str] = field(default_factory=dict)

    def __call__(self, reference: Reference) -> str:
        mark = f"SECRET-{secrets.token_hex(8)}"
        self.by_mark[mark.encode()] = reference.name
        return mark

    def refuse_in(self, content: bytes) -> None:
        """See that a body holds no secret.

        Raises:
            OutputError: it does; the name of the secret is said.
        """
        found = next((name for mark, name in self.by_mark.items() if mark in content), None)
        if found:
            what = f"the body of the requests holds the secret {found}, which a file would show to whoever reads it"
            raise OutputError(what, remedy="put it into a header: the provider's batch API takes its own key")


class _Files:
    """Lines in as many files as a provider needs; they take their names together, when the block ends well."""

    def __init__(self, path: Path, shape: BatchShape) -> None:
        self._path = path
        self._shape = shape
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self._in_file = self._bytes = 0
        self.paths: tuple[Path, ...] = ()
        self.requests = 0

    def __enter__(self) -> _Files:
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
            "the requests do not fit into one file of a batch", remedy="-o FILE: further ones are numbered"
        )
    return destination(_numbered(path, number))


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
