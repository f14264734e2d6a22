"""How a record is known: its key, and the hash of what its request uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from rowcall.model import json_values
from rowcall.model.errors import InputError, TemplateError
from rowcall.model.job import Record
from rowcall.store.types import Entry
from rowcall.templates.compile import TemplateTree, column_tree, compile_tree, is_template
from rowcall.templates.values import text_of

FilePrints = Callable[[Mapping[str, Any]], list[Any]]
"""What the files that are attached for a record are known by: path, size and time of change. Blocks."""


def input_hash(data: Mapping[str, Any], columns: frozenset[str] | None, files: FilePrints | None = None) -> str:
    """32 hex digits over the values of the used columns; a missing column is another than a null one.

    Args:
        data: the record.
        columns: those that are used; None: all of them.
        files: what the record's attached files are known by; None where none are attached.
    """
    used = dict(data) if columns is None else {name: data[name] for name in columns if name in data}
    return _digest(used if files is None else [used, files(data)])


def request_hash(fingerprint: Any) -> str:
    """32 hex digits over what all records of a kind send, as written."""
    return _digest(fingerprint)


def record_key(data: Mapping[str, Any]) -> str:
    """The key of a record that has none of its own: 32 hex digits over its columns, in whatever order they come."""
    return _digest(dict(data))


def _digest(value: Any) -> str:
    return blake2b(json_values.canonical(value), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Key:
    """Makes a record's key. ``tree`` is the template behind it, None where the key is a hash."""

    spec: str | None
    tree: TemplateTree | None

    def __call__(self, data: Mapping[str, Any]) -> str:
        """The key of one record.

        Raises:
            ValueError: missing, empty, or no text or number; the message says what to do.
        """
        if self.tree is None:
            return record_key(data)
        try:
            key = self.tree.render(data)
        except TemplateError as error:
            raise ValueError(f"the record has no key ({error.message}); {_NAME_ANOTHER}") from error
        return self._checked(key)

    def of(self, record: Record) -> str:
        """The key of a record: where the config names none, the one that it came with.

        Raises:
            ValueError: as a call.
        """
        return record.key if self.tree is None and record.key is not None else self(record.data)

    def _checked(self, key: Any) -> str:
        text = key if type(key) is str else self._text(key)
        if not text.strip():
            raise ValueError(f"the key {self.spec!r} is empty; fill it in, or {_NAME_ANOTHER}")
        if "\0" in text:
            raise ValueError(f"the key {self.spec!r} holds a NUL character; take it out, or {_NAME_ANOTHER}")
        return text

    def _text(self, key: Any) -> str:
        if isinstance(key, dict | list | bool):
            raise ValueError(f"the key {self.spec!r} is a {type(key).__name__}, not text or a number; {_NAME_ANOTHER}")
        return text_of(key)


_NAME_ANOTHER = "name another column in [input] key, or leave it out: the key is then a hash of the record"


def compile_key(spec: str | None) -> Key:
    """What makes keys: a bare name is a column (spaces and all), ``{{ }}`` a template, None a hash of the record.

    Raises:
        TemplateError: a syntax error.
    """
    if spec is None:
        return Key(None, None)
    if is_template(spec):
        return Key(spec, compile_tree(spec, where="input.key"))
    return Key(spec, column_tree(spec, where="input.key"))


@dataclass(frozen=True, slots=True)
class Keying:
    """How a record is known: its key, the columns that its request uses (None: all of them), the files it attaches."""

    key: Key
    columns: frozenset[str] | None
    files: FilePrints | None = None

    def entry(self, record: Record) -> Entry:
        """The record as the store takes it.

        Raises:
            InputError: it has no key, or holds what no JSON can.
        """
        try:
            payload = json_values.dumps(record.data).decode()
        except (ValueError, TypeError) as error:
            raise InputError(record.where, str(error)) from None
        return Entry(*self.known_by(record), payload, record.where)

    def known_by(self, record: Record) -> tuple[str, str]:
        """Its key and its input_hash.

        Raises:
            InputError: it has no key, or its request uses what no JSON can hold.
        """
        try:
            return self.key.of(record), self._hash(record.data)
        except (ValueError, TypeError) as error:
            raise InputError(record.where, str(error)) from None

    def known(self, key: str, payload: str) -> Entry:
        """A record that the store has, as it takes it again."""
        return Entry(key, self._hash(json_values.read_back(payload)), payload, "the store")

    def _hash(self, data: Mapping[str, Any]) -> str:
        return input_hash(data, self.columns, self.files)
