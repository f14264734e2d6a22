"""References: ``{ env = "NAME" }``, ``{ file = "prompt.md" }`` and ``{ command = "pass show key" }`` in the config.

A table with exactly one of these keys and a text is a reference. A file becomes its text; the other two become a
``Secret``.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rowcall.config.key_lines import KeyPath, dotted
from rowcall.config.reference_values import (
    Reference,
    Unresolved,
    contents,
    header_secret,
    json_object,
    output,
    text_of,
    variable,
)
from rowcall.config.secret import Secret
from rowcall.model.errors import ConfigError, Problem

KINDS = ("env", "file", "command")
SECRET_HEADERS = frozenset(
    {
        "api-key",
        "authorization",
        "cookie",
        "proxy-authorization",
        "x-api-key",
        "x-auth-token",
        "x-goog-api-key",
    }
)
"""Names of headers, in lower case, whose values are secrets."""

Where = Callable[[KeyPath], str]
"""Returns where a value is written: ``config.toml:12``."""


def is_reference(node: Any) -> bool:
    """Return whether a value of the config is a reference."""
    if not isinstance(node, dict) or len(node) != 1:
        return False
    [(kind, name)] = node.items()
    return kind in KINDS and isinstance(name, str) and bool(name.strip())


def files_in(node: Any) -> Iterator[str]:
    """Yield the files that the references in a tree name."""
    if is_reference(node):
        yield from [node["file"]] if "file" in node else []
    elif isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from files_in(item)


def fingerprint(tree: Any, *, folder: Path, where: Where = dotted) -> Any:
    """Return the tree for hashing: files as the SHA-256 of their contents, secrets by their names.

    Raises:
        ConfigError: lists every file that cannot be read.
    """
    printer = Fingerprinter(folder, where)
    value = printer.tree(tree, ())
    printer.finish()
    return value


class _ReferenceReplacer(ABC):
    """Replaces the references in trees, and collects errors until ``finish``."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._problems: list[Problem] = []

    def tree(self, node: Any, path: KeyPath) -> Any:
        """Return the node with every reference in it replaced; by None if it cannot be followed."""
        if is_reference(node):
            [(kind, name)] = node.items()
            return self.checked(path, self._replace, Reference(kind, name, path))
        if isinstance(node, dict):
            return {name: self.tree(value, (*path, name)) for name, value in node.items()}
        if isinstance(node, list):
            return [self.tree(item, (*path, number)) for number, item in enumerate(node)]
        return node

    def table(self, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """Replace the references in the values of a table.

        The table itself is not a reference, even if its only key is ``env``: a header may have that name.
        """
        return {name: self.tree(value, (*path, name)) for name, value in table.items()}

    def checked(self, path: KeyPath, read: Callable[..., Any], *args: Any) -> Any:
        """Return what ``read`` returns; if it fails, note the error and return None."""
        try:
            return read(*args)
        except Unresolved as error:
            self._problems.append(Problem(self._where(path), str(error), error.remedy))
            return None

    def finish(self) -> None:
        """Raise all errors together, if there are any."""
        if self._problems:
            raise ConfigError(*self._problems)

    @abstractmethod
    def _replace(self, reference: Reference) -> Any:
        """Return the value that replaces a reference."""


class Fingerprinter(_ReferenceReplacer):
    """Replaces file references by the SHA-256 of the contents, and leaves secrets as their names."""

    def __init__(self, folder: Path, where: Where) -> None:
        super().__init__(where)
        self._folder = folder

    def headers(self, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """Replace the references of headers, except secret headers, which stay as names."""
        return {
            name: value if name.lower() in SECRET_HEADERS else self.tree(value, (*path, name))
            for name, value in table.items()
        }

    def _replace(self, reference: Reference) -> dict[str, str]:
        if reference.kind != "file":
            return {reference.kind: reference.name}
        return {"file": hashlib.sha256(contents(reference, self._folder)).hexdigest()}


class Resolver(_ReferenceReplacer):
    """Replaces references by what they refer to."""

    def __init__(self, folder: Path, environ: Mapping[str, str], where: Where, *, env_file: Path | None = None) -> None:
        super().__init__(where)
        self._folder = folder
        self._environ = environ
        self._env_file = env_file

    def headers(self, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """Replace the references of headers. A secret header becomes a ``Secret``, even from a file."""
        return {
            name: (self.secret if name.lower() in SECRET_HEADERS else self.tree)(value, (*path, name))
            for name, value in table.items()
        }

    def secret(self, node: Any, path: KeyPath) -> Any:
        """Replace a reference to a secret: a file's text becomes a ``Secret`` too. White space around it is removed."""
        value = self.tree(node, path)
        if isinstance(value, str) and is_reference(node):
            value = Secret(f"file {node['file']}", value)
        return self.checked(path, header_secret, value) if isinstance(value, Secret) else value

    def document(self, node: Any, path: KeyPath) -> Any:
        """Return a JSON object from a file, or from the config itself, where nothing in it is a reference."""
        if not is_reference(node):
            return node
        value = self.tree(node, path)
        return None if value is None else self.checked(path, json_object, value, dotted(path))

    def _replace(self, reference: Reference) -> Any:
        if reference.kind == "env":
            return variable(reference, self._environ, self._env_file)
        if reference.kind == "file":
            return text_of(reference, self._folder)
        return output(reference, self._folder, self._environ)


class Masker(Resolver):
    """Replaces secrets by stand-ins, to show where they would be sent, and files by their text."""

    def __init__(self, folder: Path, stand_in: Callable[[Reference], str], where: Where) -> None:
        super().__init__(folder, {}, where)
        self._stand_in = stand_in

    def secret(self, node: Any, path: KeyPath) -> Any:
        """Replace a reference of any kind by a stand-in."""
        if not is_reference(node):
            return self.tree(node, path)
        [(kind, name)] = node.items()
        return self._masked(Reference(kind, name, path))

    def _replace(self, reference: Reference) -> Any:
        return super()._replace(reference) if reference.kind == "file" else self._masked(reference)

    def _masked(self, reference: Reference) -> Secret:
        return Secret(reference.name, self._stand_in(reference))
