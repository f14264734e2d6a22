"""Identifies a record: its key, and the hash of the values that its request uses."""

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
"""Returns path, size and time of change of the files attached to a record. Blocks on the disk."""


def input_hash(data: Mapping[str, Any], columns: frozenset[str] | None, files: FilePrints | None = None) -> str:
    """Return 32 hex digits over the values of the used columns. A missing column differs from a null one.

    Args:
        data: the record.
        columns: the columns that the request uses; None: all.
        files: identifies the attached files; None: none are attached.
    """
    used = dict(data) if columns is None else {name: data[name] for name in columns if name in data}
    return _digest(used if files is None else [used, files(data)])


def request_hash(fingerprint: Any) -> str:
    """Return 32 hex digits over what all records of a kind send, as written."""
    return _digest(fingerprint)


def record_key(data: Mapping[str, Any]) -> str:
    """Return the default key of a record: 32 hex digits over its columns, in any order."""
    return _digest(dict(data))


def _digest(value: Any) -> str:
    return blake2b(json_values.canonical(value), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Key:
    """Makes the keys of records. ``tree`` is the template of the key; None: the key is a hash."""

    spec: str | None
    tree: TemplateTree | None

    def __call__(self, data: Mapping[str, Any]) -> str:
        """Return the key of one record.

        Raises:
            ValueError: the key is missing, empty, or neither text nor a number; the message says what to do.
        """
        if self.tree is None:
            return record_key(data)
        try:
            key = self.tree.render(data)
        except TemplateError as error:
            raise ValueError(f"the record has no key ({error.message}); {_NAME_ANOTHER}") from error
        return self._checked(key)

    def of(self, record: Record) -> str:
        """Return the key of a record. If the config names none, it is the key that came with the record, if any.

        Raises:
            ValueError: as above.
        """
        return record.key if self.tree is None and record.key is not None else self(record.data)

    def _checked(self, key: Any) -> str:
        text = key if type(key) is str else self._text(key)
        if not text.strip():
            raise ValueError(f"the key {self.spec!r} is empty; fill it in, or {_NAME_ANOTHER}")
        if "\0" in text:
            raise ValueError(f"the key {self.spec!r} contains a NUL character; remove it, or {_NAME_ANOTHER}")
        return text

    def _text(self, key: Any) -> str:
        if isinstance(key, dict | list | bool):
            raise ValueError(
                f"the key {self.spec!r} is a {type(key).__name__}, neither text nor a number; {_NAME_ANOTHER}"
            )
        return text_of(key)


_NAME_ANOTHER = "name another column in [input] key, or remove it: then the key is a hash of the record"


def compile_key(spec: str | None) -> Key:
    """Compile ``[input] key``: a name is a column, even with spaces; ``{{ }}`` is a template; None means a hash.

    Raises:
        TemplateError: the template has a syntax error.
    """
    if spec is None:
        return Key(None, None)
    if is_template(spec):
        return Key(spec, compile_tree(spec, where="input.key"))
    return Key(spec, column_tree(spec, where="input.key"))


@dataclass(frozen=True, slots=True)
class Keying:
    """What identifies a record: its key, the columns that its request uses (None: all), and its attached files."""

    key: Key
    columns: frozenset[str] | None
    files: FilePrints | None = None

    def entry(self, record: Record) -> Entry:
        """Return the record as the store takes it.

        Raises:
            InputError: it has no key, or contains a value that JSON does not have.
        """
        try:
            payload = json_values.dumps(record.data).decode()
        except (ValueError, TypeError) as error:
            raise InputError(record.where, str(error)) from None
        return Entry(*self.known_by(record), payload, record.where)

    def known_by(self, record: Record) -> tuple[str, str]:
        """Return the key and the input_hash of a record.

        Raises:
            InputError: it has no key, or its request uses a value that JSON does not have.
        """
        try:
            return self.key.of(record), self._hash(record.data)
        except (ValueError, TypeError) as error:
            raise InputError(record.where, str(error)) from None

    def known(self, key: str, payload: str) -> Entry:
        """Return a stored record in the form in which the store takes it again."""
        return Entry(key, self._hash(json_values.read_back(payload)), payload, "the store")

    def _hash(self, data: Mapping[str, Any]) -> str:
        return input_hash(data, self.columns, self.files)
