"""References: ``{ env = "NAME" }``, ``{ file = "prompt.md" }`` and ``{ command = "pass show key" }`` in any tree.

A table with exactly one of these keys and a text is a reference. A file gives its text, the other two a ``Secret``.
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
"""Headers, in lower case, whose values are secrets."""

Where = Callable[[KeyPath], str]
"""Says where a value of the tree is written: ``config.toml:12``."""


def is_reference(node: Any) -> bool:
    """Whether a node of a tree is a reference."""
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
    """The tree for hashing: a file reference as the SHA-256 of its contents, secrets by their names.

    Raises:
        ConfigError: files that cannot be read; all of them.
    """
    printer = Fingerprinter(folder, where)
    value = printer.tree(tree, ())
    printer.finish()
    return value


class _Walker(ABC):
    """Replaces the references of trees and keeps what went wrong until ``finish``."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._problems: list[Problem] = []

    def tree(self, node: Any, path: KeyPath) -> Any:
        """The node with every reference in it replaced; None for one that leads nowhere."""
        if is_reference(node):
            [(kind, name)] = node.items()
            return self.checked(path, self._replace, Reference(kind, name, path))
        if isinstance(node, dict):
            return {name: self.tree(value, (*path, name)) for name, value in node.items()}
        if isinstance(node, list):
            return [self.tree(item, (*path, number)) for number, item in enumerate(node)]
        return node

    def table(self, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """A table of names, which is itself no reference whatever its one name is, with its values replaced."""
        return {name: self.tree(value, (*path, name)) for name, value in table.items()}

    def checked(self, path: KeyPath, read: Callable[..., Any], *args: Any) -> Any:
        """What ``read`` gives; None, and a problem kept, where that leads nowhere."""
        try:
            return read(*args)
        except Unresolved as error:
            self._problems.append(Problem(self._where(path), str(error), error.remedy))
            return None

    def finish(self) -> None:
        """Raise what went wrong, if anything did."""
        if self._problems:
            raise ConfigError(*self._problems)

    @abstractmethod
    def _replace(self, reference: Reference) -> Any:
        """What stands in a reference's place."""


class Fingerprinter(_Walker):
    """Replaces file references by the SHA-256 of the contents and leaves secrets named."""

    def __init__(self, folder: Path, where: Where) -> None:
        super().__init__(where)
        self._folder = folder

    def headers(self, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """A table of headers; one that is a secret stays named, wherever it comes from."""
        return {
            name: value if name.lower() in SECRET_HEADERS else self.tree(value, (*path, name))
            for name, value in table.items()
        }

    def _replace(self, reference: Reference) -> dict[str, str]:
        if reference.kind != "file":
            return {reference.kind: reference.name}
        return {"file": hashlib.sha256(contents(reference, self._folder)).hexdigest()}


class Resolver(_Walker):
    """Replaces references by what they refer to."""

    def __init__(self, folder: Path, environ: Mapping[str, str], where: Where, *, env_file: Path | None = None) -> None:
        super().__init__(where)
        self._folder = folder
        self._environ = environ
        self._env_file = env_file

    def headers(self, table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        """A table of headers; one that is a secret becomes a ``Secret``, a file's text too."""
        return {
            name: (self.secret if name.lower() in SECRET_HEADERS else self.tree)(value, (*path, name))
            for name, value in table.items()
        }

    def secret(self, node: Any, path: KeyPath) -> Any:
        """A reference in a place for secrets: a file's text is a ``Secret`` too; no white space around it."""
        value = self.tree(node, path)
        if isinstance(value, str) and is_reference(node):
            value = Secret(f"file {node['file']}", value)
        return self.checked(path, header_secret, value) if isinstance(value, Secret) else value

    def document(self, node: Any, path: KeyPath) -> Any:
        """A JSON object that stands in the tree itself, where nothing is a reference, or in a file."""
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
    """Replaces secrets by stand-ins, which show where they would go, and other references by what they refer to."""

    def __init__(self, folder: Path, stand_in: Callable[[Reference], str], where: Where) -> None:
        super().__init__(folder, {}, where)
        self._stand_in = stand_in

    def secret(self, node: Any, path: KeyPath) -> Any:
        """A stand-in for a reference of any kind."""
        if not is_reference(node):
            return self.tree(node, path)
        [(kind, name)] = node.items()
        return self._masked(Reference(kind, name, path))

    def _replace(self, reference: Reference) -> Any:
        return super()._replace(reference) if reference.kind == "file" else self._masked(reference)

    def _masked(self, reference: Reference) -> Secret:
        return Secret(reference.name, self._stand_in(reference))
