"""The answers to an OpenAI batch file, in the format of the Batch API's output file.

Source: the Batch API's reference. What an API answered is a ``response``, an error status too; what no answer came
for is an ``error``. Lines that have not ended are left out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from rowcall.model import json_values
from rowcall.model.job import Status
from rowcall.output.join_answers import Join, JoinedRow, Writer
from rowcall.store.types import Answer, LastCall

Order = Literal["input", "completion"]
Put = Callable[[str, dict[str, Any]], None]
"""Takes a line and the time at which its record ended."""


@dataclass(frozen=True, slots=True)
class BatchLines:
    """An input of batch lines and the replies in a store."""

    join: Join
    order: Order

    async def write(self, writer: Writer, *, only: Status | None = None) -> int:
        """Write a line for each record that has ended; return how many."""
        if self.order == "input":
            return await self._write(lambda at, line: writer.write(line), only)
        with closing(_Arranged()) as arranged:
            written = await self._write(arranged.put, only)
            for line in arranged:
                writer.write(line)
        return written

    async def _write(self, put: Put, only: Status | None) -> int:
        written = 0
        async for group in self.join.groups(only):
            calls = await self.join.reader.last_calls(self.join.kind, [joined.key for joined in group])
            for joined in group:
                if line := _line(joined, calls.get(joined.key)):
                    put(calls[joined.key].at, line)
                    written += 1
        return written


class _Arranged:
    """Sorts lines by the time at which they ended; on disk, since there may be more than memory can hold."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("CREATE TABLE lines (at TEXT, number INTEGER PRIMARY KEY, line BLOB)")
        self._connection.execute("BEGIN")

    def put(self, at: str, line: dict[str, Any]) -> None:
        """Take a line in."""
        self._connection.execute("INSERT INTO lines (at, line) VALUES (?, ?)", (at, json_values.dumps(line)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for (line,) in self._connection.execute("SELECT line FROM lines ORDER BY at, number"):
            yield json_values.loads(line)

    def close(self) -> None:
        """Delete the file."""
        self._connection.close()


def _line(joined: JoinedRow, call: LastCall | None) -> dict[str, Any] | None:
    """Return the line of a record; None if it has not ended."""
    if joined.done is not None:
        return _ended(joined.done, response=joined.done.value)
    answer = joined.answer
    if answer is None or call is None or answer.input_hash != joined.input_hash:
        return None
    if answer.status is Status.CANCELLED:
        return _ended(answer, error={"code": "batch_cancelled", "message": "cancelled before it was called"})
    if answer.status is not Status.FAILED:
        return None
    if call.status is None or 200 <= call.status < 300:
        return _ended(answer, error={"code": answer.reason, "message": answer.error})
    response = {"status_code": call.status, "request_id": call.request_id, "body": _error_body(answer, call.body)}
    return _ended(answer, response=response)


def _ended(answer: Answer, *, response: Any = None, error: Any = None) -> dict[str, Any]:
    number = blake2b(answer.key.encode(), digest_size=16).hexdigest()
    return {"id": f"batch_req_{number}", "custom_id": answer.key, "response": response, "error": error}


def _error_body(answer: Answer, body: str | None) -> Any:
    """Return the reply as it came, or an error in the API's shape if it was no JSON object or too long to keep."""
    try:
        document = json_values.loads(body or "")
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    return {"error": {"message": answer.error, "type": None, "param": None, "code": answer.reason}}
