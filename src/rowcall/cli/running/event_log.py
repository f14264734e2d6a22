"""Writes the events of a run as JSON lines: for ``--events``, with the schema of ``rowcall schema events``."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from functools import reduce
from io import FileIO
from operator import or_
from pathlib import Path
from typing import Any, Literal, Self, TextIO, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

from rowcall.config import Config
from rowcall.engine.options import Report
from rowcall.model.errors import OutputError
from rowcall.model.events import CallEnded, Event, RequestEnded, Settled
from rowcall.model.outcome import Action, Failure, FailureClass, Outcome
from rowcall.model.prices import dollars

_DETAILS: dict[str, Any] = {
    "action": (Action, ...),
    "class": (FailureClass | None, None),
    "reason": (str | None, None),
    "message": (str | None, None),
    "http_status": (int | None, None),
    "request_id": (str | None, None),
    "latency_s": (float | None, None),
    "tokens": (dict[Literal["input", "output", "cached", "reasoning"], int] | None, None),
    "cost_usd": (float | None, None),
}
"""The fields that describe a call's outcome; the answer itself is only in the store."""
_FIELDS_BY_EVENT: dict[str, dict[str, Any]] = {
    "run_began": {"kind": (str, ...), "input": (str, ...), "concurrency": (int, ...)},
    "run_ended": {
        "kind": (str, ...),
        "reason": (str, ...),
        "message": (str, ...),
        "done": (int, ...),
        "failed": (int, ...),
        "left": (int, ...),
        "elapsed_s": (float, ...),
    },
    "request_ended": {
        "key": (str, ...),
        "http_status": (int | None, ...),
        "reason": (str, ...),
        "latency_s": (float | None, ...),
    },
    "call_ended": {"key": (str, ...), **_DETAILS, "wait_s": (float, ...)},
    "settled": {"key": (str, ...), **_DETAILS},
}
"""The fields of lines that differ from those of the event class: type and default (... if always there)."""


def name_of(event: type) -> str:
    """Return the name of an event in a line: ``call_ended`` for ``CallEnded``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event.__name__).lower()


def line_of(event: Event) -> dict[str, Any]:
    """Return the fields of an event's line."""
    match event:
        case RequestEnded():
            said = {"http_status": event.status, "reason": event.reason, "latency_s": event.latency}
            return {"key": event.key, **said}
        case CallEnded():
            return {
                "key": event.key,
                **_details(event.decision.action, event.outcome),
                "wait_s": round(event.decision.wait, 3),
            }
        case Settled():
            return {"key": event.key, **_details(event.action, event.outcome)}
        case _:
            return {name.rstrip("_"): value for name, value in asdict(event).items()}


def _details(action: Action, outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"action": action}
    failed = outcome if isinstance(outcome, Failure) else None
    return {
        "action": action,
        "class": failed and failed.cls,
        "reason": failed and failed.reason,
        "message": failed and failed.message,
        "http_status": outcome.status,
        "request_id": outcome.request_id,
        "latency_s": outcome.latency,
        "tokens": {name: number for name, number in asdict(outcome.usage).items() if name != "cost"},
        "cost_usd": dollars(outcome.usage.cost),
    }


class EventLog:
    """A listener that writes each event as a line of JSON, after the lines of earlier runs in the file.

    Args:
        path: the file; ``-`` is stdout.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._stream: FileIO | TextIO | None = sys.stdout if str(path) == "-" else _opened(path)

    def __call__(self, event: Event) -> None:
        """Write an event."""
        self.write(name_of(type(event)), line_of(event))

    def began(self, config: Config, concurrency: int) -> None:
        """Write a line for the start of a run."""
        self.write("run_began", {"kind": config.name, "input": config.input.path, "concurrency": concurrency})

    def ended(self, report: Report) -> None:
        """Write a line for the end of a run: what it did, and what is left of the job."""
        ending, tally = report.ending, report.tally
        why = {"kind": report.kind, "reason": ending.reason, "message": ending.message}
        did = {"done": tally.done, "failed": tally.failed, "left": report.left, "elapsed_s": round(report.elapsed, 3)}
        self.write("run_ended", why | did)

    def write(self, event: str, fields: dict[str, Any]) -> None:
        """Write a line. After a failure (the reader is gone, the disk is full) nothing more is written."""
        if self._stream is None:
            return
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"at": at, "event": event, **fields}) + "\n"
        try:
            if isinstance(self._stream, FileIO):
                self._stream.write(line.encode())
            else:
                self._stream.write(line)
                self._stream.flush()
        except OSError:
            self.__exit__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if isinstance(self._stream, FileIO):
            self._stream.close()
        self._stream = None


def _opened(path: Path) -> FileIO:
    """Open a file unbuffered, so that each line is in it at once and closing it cannot fail on a full disk."""
    try:
        return FileIO(path, "a")
    except OSError as error:
        remedy = "name another file, or use --events - for stdout"
        raise OutputError(f"{path}: cannot be written: {error.strerror}", remedy=remedy) from None


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a line."""
    fields = {name_of(event): _fields(event) for event in get_args(Event)} | _FIELDS_BY_EVENT
    lines: Any = reduce(or_, (_model(name, fields[name]) for name in sorted(fields)))
    return {"title": "A line of rowcall run --events", **TypeAdapter(lines).json_schema()}


def _model(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    every: dict[str, Any] = {"at": (str, ...), "event": (Literal[name], ...)}
    return create_model(name, __config__=ConfigDict(extra="forbid"), **every | fields)


def _fields(event: type) -> dict[str, Any]:
    return {name.rstrip("_"): (kind, ...) for name, kind in get_type_hints(event).items()}
