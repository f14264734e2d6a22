"""Opens a file beneath a folder, whatever links stand in its way."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

_MOST_LINKS = 40
"""As many as Linux follows in one path (path_resolution(7))."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_PLAIN_FILE = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
"""What opening a link gives with O_NOFOLLOW: Linux, Linux with O_DIRECTORY, FreeBSD."""


def open_beneath(root: str, name: str) -> int:
    """Open a file for reading by a path that never leaves ``root``, and return its descriptor.

    Each folder of the path is opened from the one before, without following a link, so nobody can swap one for a link
    in between. A link is followed only if it is relative and leads to something beneath ``root``. The root itself may
    be a link. A pipe is opened without waiting for a writer: look at what it is before reading.

    Raises:
        OSError: the file is missing or unreadable, or a link leads out of ``root`` (EXDEV).
    """
    left = [part for part in reversed(name.split("/")) if part not in ("", ".")]
    links = 0
    with ExitStack() as stack:
        folders = [_kept(stack, os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))]
        while left:
            part = left.pop()
            if part == "..":
                folders.pop()
                if not folders:
                    raise _leads_out(root)
                continue
            try:
                opened = os.open(part, _READ | (os.O_DIRECTORY if left else 0), dir_fd=folders[-1])
            except OSError as error:
                links += 1
                if links > _MOST_LINKS:
                    raise
                left += _link_parts(part, folders[-1], root, error)
                continue
            if not left:
                return opened
            folders.append(_kept(stack, opened))
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _kept(stack: ExitStack, folder: int) -> int:
    stack.callback(os.close, folder)
    return folder


def _link_parts(part: str, folder: int, root: str, error: OSError) -> list[str]:
    """Return the parts of a link's target, last first; raise ``error`` if it is no link."""
    if error.errno not in _NO_PLAIN_FILE:
        raise error
    try:
        target = os.readlink(part, dir_fd=folder)
    except OSError:
        raise error from None
    if target.startswith("/"):
        raise _leads_out(root)
    return [step for step in reversed(target.split("/")) if step not in ("", ".")]


def _leads_out(root: str) -> OSError:
    return OSError(errno.EXDEV, f"a link leads out of the folder {root}")
