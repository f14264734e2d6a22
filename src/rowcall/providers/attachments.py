"""Files that are sent with a request. They are found by a path or a pattern, read when the request is built, not kept.

``{ attach = "{{ row.image }}" }`` anywhere in a body becomes the file as a data URL; ``as = "base64"`` gives its bytes.
A pattern with ``*``, ``?`` or ``[`` may match several files. Then the list item around it is repeated for each file, in
the order of their names. An empty path leaves the list item out.

A path that is made from a record stays beneath a folder that the config names: ``[request] attachments``, or the folder
before the first placeholder of the template, as in ``images/{{ row.image }}``. It is opened beneath that folder, so no
link leads out of it. The values of a record are names and never patterns; hidden files are refused, and rowcall's own
files (config, store, keys, ``.env``) are never sent. So no record can name a file that nobody meant to send.
"""

from __future__ import annotations

import base64
import glob
import mimetypes
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowcall.model.errors import AttachmentError, ConfigError, Problem, TemplateError
from rowcall.system.open_beneath import open_beneath
from rowcall.templates.compile import TemplateTree, compile_tree
from rowcall.templates.values import text_of

Row = Mapping[str, Any]
ChosenFiles = Mapping[str, "FoundFile"]
"""The file that each pattern stands for in the current copy of a list item."""

LARGEST = 20_000_000
"""Default of the largest size of one file, in bytes."""

_MAGIC = ("*", "?", "[")
_TEMPLATE = ("{{", "{%", "{#")
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


def _media_type(name: str, _: bytes) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _base64(_: str, content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


_FORMS: Mapping[str, Callable[[str, bytes], str]] = {
    "data-url": lambda name, content: f"data:{_media_type(name, content)};base64,{_base64(name, content)}",
    "base64": _base64,
    "media-type": _media_type,
    "name": lambda name, _: name,
    "text": lambda _, content: content.decode("utf-8"),
}
"""What a file becomes, from its name and content, by the value of ``as``."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a pattern or path names.

    Attributes:
        root: the folder that it must be beneath; None if the config contains the whole path.
        path: relative to ``root``, or the whole path.
    """

    root: str | None
    path: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)  # noqa: PTH119  a Path would make nothing of "."

    def open(self) -> int:
        """Return a descriptor for reading; a pipe is not waited for."""
        if self.root is None:
            return os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        return open_beneath(self.root, self.path)


@dataclass(frozen=True, slots=True, eq=False)
class Attachment:
    """One ``{ attach = ..., as = ... }`` of a body. A class of its own, because no data of a record can imitate it.

    Attributes:
        path: the template of its path or pattern.
        pattern: the same with the values of the record as plain names; None if the config's text is no pattern.
        form: the value of ``as``.
        root: the folder that a record cannot leave; None if the config contains the whole path.
    """

    path: TemplateTree
    pattern: TemplateTree | None
    form: str
    root: str | None


@dataclass(slots=True)
class Attachments:
    """The files of one body.

    Args:
        folder: relative paths start here; None: the current folder.
        largest: largest size of one file, in bytes.
        root: the folder that no record can leave, where relative paths start then; None: each template names one.
        own: files of rowcall itself, which are never sent.
        found: the attachments of the body, once ``take_from`` has seen it.
    """

    folder: Path | None
    largest: int = LARGEST
    root: Path | None = None
    own: Sequence[Path] = ()
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

    def files(self, one: Attachment, row: Row) -> tuple[str, list[FoundFile]]:
        """Return the pattern of an attachment for this record, and the files that match it; none for an empty pattern.

        Raises:
            AttachmentError: the path leaves its folder or matches nothing.
            TemplateError: the path cannot be rendered.
        """
        pattern = text_of(one.path.render(row)).strip()
        if not pattern:
            return pattern, []
        try:
            files = self._matches(one, pattern, row)
        except (OSError, ValueError) as error:
            raise _unreadable(one, pattern, error) from error
        if not files:
            raise AttachmentError(f"{one.path.where}: no file matches {pattern!r}", remedy=_FILES)
        return pattern, files

    def read(self, one: Attachment, file: FoundFile, pattern: str) -> str:
        """Return what a file becomes.

        Raises:
            AttachmentError: it is missing, too large, no regular file, or one of rowcall's own.
        """
        try:
            with _closing(file.open()) as descriptor:
                self._check(one, file, os.fstat(descriptor))
                with open(descriptor, "rb", closefd=False) as opened:
                    return _FORMS[one.form](file.name, opened.read(self.largest))
        except (OSError, ValueError) as error:
            raise _unreadable(one, pattern, error) from error

    def _matches(self, one: Attachment, pattern: str, row: Row) -> list[FoundFile]:
        """Return the file at a path, even if it does not exist; for a pattern the files that match.

        A pattern skips hidden files and rowcall's own.
        """
        root = one.root
        plain = FoundFile(root, _inside(one, self._full(pattern), pattern) if root else self._full(pattern))
        if one.pattern is None or os.path.lexists(self._full(pattern)):
            return [plain]
        searched = self._full(text_of(one.pattern.render(row)).strip())
        inside = os.path.relpath(searched, root) if root else searched
        names = sorted(glob.glob(inside, root_dir=root))  # noqa: PTH207  Path.glob matches hidden files too
        return [file for file in (FoundFile(root, name) for name in names) if self._may_match(file)]

    def _may_match(self, file: FoundFile) -> bool:
        path = Path(file.root or "", file.path)
        return path.is_file() and not self._is_own(path.stat())

    def _is_own(self, status: os.stat_result) -> bool:
        for path in self.own:
            with suppress(OSError):
                if os.path.samestat(status, path.stat()):
                    return True
        return False

    def _check(self, one: Attachment, file: FoundFile, status: os.stat_result) -> None:
        """Check that it is a regular file (a pipe might never end), not too large, and not one of rowcall's own."""
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        if self._is_own(status):
            raise ValueError("it is one of rowcall's own files (config, store, key, .env), which are never sent")
        if status.st_size > self.largest:
            what = f"{file.name} has {status.st_size:,} bytes; [request] max_attachment is {self.largest:,}"
            raise AttachmentError(f"{one.path.where}: {what}", remedy=_LIMIT)

    def _attachment(self, path: str, form: Any, where: str) -> Attachment:
        if not isinstance(form, str) or form not in _FORMS:
            raise ConfigError(Problem(f"{where}.as", f"must be one of {', '.join(_FORMS)}", _USUAL))
        if path.startswith("~/"):
            path = f"{Path.home()}{path[1:]}"
        patterned = any(sign in _PLACEHOLDER.sub("", path) for sign in _MAGIC)
        pattern = compile_tree(path, where=where, escape=glob.escape) if patterned else None
        self.found.append(Attachment(compile_tree(path, where=where), pattern, form, self._root(path, where)))
        return self.found[-1]

    def _root(self, path: str, where: str) -> str | None:
        """Return the folder that no record can leave; None if the path has no placeholder.

        Raises:
            ConfigError: the path begins with a value of the record, and the config names no folder.
        """
        begins = [path.index(sign) for sign in _TEMPLATE if sign in path]
        if not begins:
            return None
        first = min(begins + [path.index(sign) for sign in _MAGIC if sign in path])
        before, slash, _ = path[:first].rpartition("/")
        if not slash and self.root is None:
            what = "begins with a value of the record, which could name any file of this folder"
            raise ConfigError(Problem(where, what, _ROOT))
        return self._full(before + slash)

    def _full(self, path: str) -> str:
        return os.path.normpath((self.root or self.folder or Path()) / path)

    def _prints(self, one: Attachment, row: Row) -> Iterator[Any]:
        try:
            pattern, files = self.files(one, row)
            for file in files:
                with _closing(file.open()) as descriptor:
                    status = os.fstat(descriptor)
                yield [pattern, file.name, status.st_size, status.st_mtime_ns]
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
        pattern, files = self.attachments.files(one, self.row)
        file = chosen.get(pattern) or (files[0] if len(files) == 1 else None)
        if file is None:
            what = f"{one.path.where}: {pattern!r} matches {len(files)} files, but exactly one is needed"
            raise AttachmentError(
                what, remedy="For several files, or none, put { attach = ... } into a list item of its own."
            )
        return self.attachments.read(one, file, pattern)


def _directly_in(node: Any) -> Iterator[Attachment]:
    """Yield the attachments of a list item, without those in lists inside it, whose own items are repeated."""
    if isinstance(node, Attachment):
        yield node
    elif isinstance(node, dict):
        for item in node.values():
            yield from _directly_in(item)


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _inside(one: Attachment, full: str, pattern: str) -> str:
    """Return a path relative to the folder that it must be beneath.

    Raises:
        AttachmentError: it is hidden, or not beneath that folder.
    """
    assert one.root is not None
    inside = os.path.relpath(full, one.root)
    if any(part.startswith(".") for part in inside.split("/")):
        what = f"{one.path.where}: {pattern!r} is a hidden file, or outside the folder {one.root}"
        raise AttachmentError(what, remedy=_ROOT)
    return inside


def _unreadable(one: Attachment, pattern: str, error: Exception) -> AttachmentError:
    why = getattr(error, "strerror", None) or str(error)
    return AttachmentError(f"{one.path.where}: {pattern!r} cannot be read: {why}", remedy=_FILES)


_ROOT = """Name the folder of the files: attachments = "images" below [request], or "images/{{ row.image }}"."""
_USUAL = 'The default is "data-url".'
_FILES = "Correct the path in the record or put the file there, then run again."
_LIMIT = "Make the file smaller, or raise [request] max_attachment."
