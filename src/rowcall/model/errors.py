"""Errors that a person can correct.

    RowcallError                    a message that says what and where, a remedy, an exit code
    |-- ConfigError                 the config file, a flag or a variable; carries every problem found
    |-- InputError                  the input cannot be read, or one line of it
    |   '-- DuplicateKey            two records of one pass share a key and differ
    |-- OutputError                 an export, or another file for people, cannot be written
    |-- TemplateError               a template cannot be compiled, or not rendered for this record
    |   '-- AttachmentError         a file that a record names cannot be sent along
    |-- NothingYet                  the store does not hold the batch job yet
    |-- RequestChanged              the request is not the one the done records were made with
    |-- RunStopped                  a run that a program waits for ended before all records did
    '-- StoreError
        |-- Busy                    another process holds the store, or a server is away; retry is safe
        |-- Unavailable             missing folder, not a file, vanished, a server that cannot be reached
        |   '-- NoStore             there is no store there yet
        |-- Full                    no space left; nothing stored is lost
        |-- ReadOnly                the file or its folder cannot be written
        |-- Corrupt                 not a database, truncated, flipped bits
        '-- SchemaMismatch          written by a newer rowcall, or by something else

The result of a call to the API is not an exception but an outcome (see outcome.py). Anything that is not a
``RowcallError`` is a bug in rowcall (exit code 70).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of the command."""

    DONE = 0  # all done, or --limit reached
    SOME_FAILED = 1
    USAGE = 2  # usage, config, input or store
    STOPPED = 3  # stopped early, can be resumed
    BUG = 70
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class RowcallError(Exception):
    """An error that a person can correct: what happened, where, and what to do about it."""

    exit_code: Exit = Exit.USAGE

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  {self.remedy}" if self.remedy else self.message


class NothingYet(RowcallError):
    """The store does not hold this batch job; it may still be added."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a config: where it is (``config.toml:12``), what it is, what to do."""

    where: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"\n  {self.remedy}" if self.remedy else "")


class ConfigError(RowcallError):
    """The config is wrong; ``problems`` holds all of its faults at once."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class InputError(RowcallError):
    """The input cannot be read; ``where`` is the file, with the line where there is one."""

    def __init__(self, where: str, what: str, *, remedy: str = "") -> None:
        super().__init__(f"{where}: {what}", remedy=remedy)
        self.where = where


class DuplicateKey(InputError):
    """Two different records of one pass have the same key."""


class OutputError(RowcallError):
    """A file for people (an export, lines set aside) cannot be written; the store is not touched by it."""


class TemplateError(RowcallError):
    """A template cannot be compiled, or cannot be rendered for this record; ``reason`` is that of the failure."""

    reason = "template_error"


class AttachmentError(TemplateError):
    """A file that a record names is missing, too large, or cannot be read."""

    reason = "attachment"


class RequestChanged(RowcallError):
    """The request differs from that of the done records, and no ``if_changed`` says what to do with them."""

    def __init__(self, message: str, *, done: int, remedy: str) -> None:
        super().__init__(message, remedy=remedy)
        self.done = done


class RunStopped(RowcallError):
    """A run ended before all records did, and can be resumed; ``reason`` says why it ended."""

    exit_code = Exit.STOPPED

    def __init__(self, message: str, *, reason: str, remedy: str) -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason


class StoreError(RowcallError):
    """The store cannot do what was asked."""


class Busy(StoreError):
    """Another process holds the store, or the database cannot be reached at the moment; it is safe to try again."""


class Unavailable(StoreError):
    """The store is not there: a missing folder, something that is not a file, a server that cannot be reached."""


class NoStore(Unavailable):
    """There is no store there yet."""


class Full(StoreError):
    """No space is left on the device; nothing that was stored is lost."""


class ReadOnly(StoreError):
    """The file or its folder cannot be written."""


class Corrupt(StoreError):
    """The file is not a database, or a damaged one."""


class SchemaMismatch(StoreError):
    """The file was written by a newer rowcall, or by another program."""
