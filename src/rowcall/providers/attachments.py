"""Files that are sent with a request. They are found by a path or a pattern, read when the request is built, not kept.

``{ attach = "{{ row.image }}" }`` anywhere in a body becomes the file as a data URL; ``as = "base64"`` gives its bytes.
A pattern with ``*``, ``?`` or ``[`` may match several files. Then the list item around it is repeated for each file, in
the order of their names. An empty path leaves the list item out.

A path that comes from a record must stay below the folder that its template names before the first placeholder, or
below the config's folder if it names none. Hidden files are refused. So no record can name a file that nobody meant to
send.
"""

from __future__ import annotations

import base64
import glob
import mimetypes
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowcall.model.errors import AttachmentError, ConfigError, Problem, TemplateError
from rowcall.templates.compile import TemplateTree, compile_tree
from rowcall.templates.values import text_of

Row = Mapping[str, Any]
ChosenFiles = Mapping[str, Path]
"""The file that each pattern stands for in the current copy of a list item."""

LARGEST = 20_000_000
"""Default of the largest size of one file, in bytes."""

_MAGIC = ("*", "?", "[")
_TEMPLATE = ("{{", "{%", "{#")


def _media_type(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")


_FORMS: Mapping[str, Callable[[Path], str]] = {
    "data-url": lambda path: f"data:{_media_type(path)};base64,{_base64(path)}",
    "base64": _base64,
    "media-type": _media_type,
    "name": lambda path: path.name,
    "text": lambda path: path.read_text("utf-8"),
}
"""What an attached file becomes, by the value of ``as``."""


@dataclass(frozen=True, slots=True, eq=False)
class Attachment:
    """One ``{ attach = ..., as = ... }`` of a body. A class of its own, because no data of a record can imitate it.

    Attributes:
        path: the template of its path or pattern.
        form: the value of ``as``.
        root: the folder that a record cannot leave; None if the config contains the whole path.
    """

    path: TemplateTree
    form: str
    root: str | None


@dataclass(slots=True)
class Attachments:
    """The files of one body.

    Args:
        folder: relative paths start here; None: the current folder.
        largest: largest size of one file, in bytes.
        found: the attachments of the body, once ``take_from`` has seen it.
    """

    folder: Path | None
    largest: int = LARGEST
    found: list[Attachment] = field(default_factory=list)

    def take_from(self, tree: Any, where: str) -> Any:
        """Replace each ``{ attach = ... }`` of a tree by an ``Attachment``, and keep it in ``found`` too.

        Raises:
            ConfigError: ``as`` has an unknown value.
            TemplateError: a path cannot be compiled.
        """
        if isinstance(tree, list):
            return [self.take_from(item, f"{where}[{number}]") for number, item in enumerate(tree)]
        if not isinstance(tree, dict):
            return tree
        if isinstance(tree.get("attach"), str) and tree.keys() <= {"attach", "as"}:
            return self._attachment(tree["attach"], tree.get("as", "data-url"), where)
        return {name: self.take_from(item, f"{where}.{name}") for name, item in tree.items()}

    def prints(self, row: Row) -> list[Any]:
        """Return path, size and time of change of a record's files, to notice changes; None for a missing file."""
        return [item for one in self.found for item in self._prints(one, row)]

    def filled(self, body: Any, row: Row, *, bare: bool = False) -> Any:
        """Fill the files into a body.

        Args:
            body: the body, rendered for this record.
            row: the record.
            bare: no file is read; empty texts take the places of files.

        Raises:
            AttachmentError: a file is missing, too large or cannot be read, or several files match where one is needed.
        """
        return _BodyFiller(self, row, bare).node(body, {})

    def files(self, one: Attachment, row: Row) -> tuple[str, list[Path]]:
        """Return the pattern of an attachment for this record, and the files that match it; none for an empty pattern.

        Raises:
            AttachmentError: the path leaves its folder or matches nothing.
            TemplateError: the path cannot be rendered.
        """
        pattern = text_of(one.path.render(row)).strip()
        if not pattern:
            return pattern, []
        full = self._full(pattern)
        if one.root is not None:
            _stay_below(one, full, pattern)
        try:
            paths = _matches(full)
        except (OSError, ValueError) as error:
            raise _unreadable(one, pattern, error) from error
        if not paths:
            raise AttachmentError(f"{one.path.where}: no file matches {pattern!r}", remedy=_FILES)
        return pattern, paths

    def _attachment(self, path: str, form: Any, where: str) -> Attachment:
        if not isinstance(form, str) or form not in _FORMS:
            raise ConfigError(Problem(f"{where}.as", f"must be one of {', '.join(_FORMS)}", _USUAL))
        if path.startswith("~/"):
            path = f"{Path.home()}{path[1:]}"
        self.found.append(Attachment(compile_tree(path, where=where), form, self._root(path)))
        return self.found[-1]

    def _root(self, path: str) -> str | None:
        """Return the folder that a template names before its first placeholder; None if it has no placeholder."""
        begins = [path.index(sign) for sign in _TEMPLATE if sign in path]
        if not begins:
            return None
        before, slash, _ = path[: min(begins)].rpartition("/")
        return self._full(before + slash)

    def _full(self, path: str) -> str:
        return os.path.normpath((self.folder or Path()) / path)

    def _prints(self, one: Attachment, row: Row) -> Iterator[Any]:
        try:
            pattern, paths = self.files(one, row)
            for path in paths:
                stat = path.stat()
                yield [pattern, path.name, stat.st_size, stat.st_mtime_ns]
        except (TemplateError, OSError, ValueError):
            yield None


@dataclass(frozen=True, slots=True)
class _BodyFiller:
    """Fills the files into one body."""

    attachments: Attachments
    row: Row
    bare: bool

    def node(self, node: Any, chosen: ChosenFiles) -> Any:
        if isinstance(node, Attachment):
            return "" if self.bare else self._value(node, chosen)
        if isinstance(node, dict):
            return {name: self.node(item, chosen) for name, item in node.items()}
        if isinstance(node, list):
            return [copy for item in node for copy in self._repeated(item, chosen)]
        return node

    def _repeated(self, item: Any, chosen: ChosenFiles) -> Iterator[Any]:
        """Yield a list item once for each file that its attachments match; as it is if it has no attachment.

        Patterns in the same item advance together, like ``zip``: a file and its name in one item stay a pair.
        """
        inside = [] if self.bare else [self.attachments.files(one, self.row) for one in _directly_in(item)]
        patterns = dict(inside)
        if not patterns:
            yield self.node(item, chosen)
            return
        if len({len(paths) for paths in patterns.values()}) > 1:
            raise AttachmentError(f"{', '.join(patterns)} match different numbers of files", remedy=_FILES)
        for paths in zip(*patterns.values(), strict=True):
            yield self.node(item, {**chosen, **dict(zip(patterns, paths, strict=True))})

    def _value(self, one: Attachment, chosen: ChosenFiles) -> str:
        pattern, paths = self.attachments.files(one, self.row)
        path = chosen.get(pattern) or (paths[0] if len(paths) == 1 else None)
        if path is None:
            what = f"{one.path.where}: {pattern!r} matches {len(paths)} files, but exactly one is needed"
            raise AttachmentError(
                what, remedy="For several files, or none, put { attach = ... } into a list item of its own."
            )
        try:
            _check(one, path, self.attachments.largest)
            return _FORMS[one.form](path)
        except (OSError, ValueError) as error:
            raise _unreadable(one, pattern, error) from error


def _directly_in(node: Any) -> Iterator[Attachment]:
    """Yield the attachments of a list item, without those in lists inside it, whose own items are repeated."""
    if isinstance(node, Attachment):
        yield node
    elif isinstance(node, dict):
        for item in node.values():
            yield from _directly_in(item)


def _stay_below(one: Attachment, full: str, pattern: str) -> None:
    inside = Path(os.path.relpath(full, one.root)).parts
    if not inside or any(part.startswith(".") for part in inside):
        what = f"{one.path.where}: {pattern!r} is a hidden file, or outside the folder {one.root}"
        raise AttachmentError(what, remedy="Name the folder in the template: { attach = '/data/{{ row.image }}' }")


def _matches(full: str) -> list[Path]:
    """Return the file at a path, even if it does not exist; for a pattern the files that match, except hidden ones."""
    path = Path(full)
    if path.exists() or not any(sign in full for sign in _MAGIC):
        return [path]
    return [match for match in map(Path, sorted(glob.glob(full))) if match.is_file()]  # noqa: PTH207  Path.glob matches hidden files too


def _unreadable(one: Attachment, pattern: str, error: Exception) -> AttachmentError:
    why = getattr(error, "strerror", None) or str(error)
    return AttachmentError(f"{one.path.where}: {pattern!r} cannot be read: {why}", remedy=_FILES)


def _check(one: Attachment, path: Path, largest: int) -> None:
    """Check that it is a regular file (a pipe might never end) and not too large."""
    size = path.stat().st_size
    if not path.is_file():
        raise ValueError("it is not a regular file")
    if size > largest:
        what = f"{one.path.where}: {path.name} has {size:,} bytes; [request] max_attachment is {largest:,}"
        raise AttachmentError(what, remedy=_LIMIT)


_USUAL = 'The default is "data-url".'
_FILES = "Correct the path in the record or put the file there, then run again."
_LIMIT = "Make the file smaller, or raise [request] max_attachment."
