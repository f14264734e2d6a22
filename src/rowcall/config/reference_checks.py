"""What is wrong with a reference as it is written, found before it is followed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from rowcall.config.error_text import ConfigFault, name_of
from rowcall.config.key_lines import KeyPath
from rowcall.config.references import is_reference
from rowcall.config.secret_scan import looks_like_key

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
"""Names that every shell knows (POSIX, Base Definitions, 8.1): a printed command says ``$NAME``."""
_REMEDY = '{ env = "NAME" } takes the name of a variable; the variable holds the key'


def broken_references(node: Any, path: KeyPath) -> Iterator[ConfigFault]:
    """Yield the references of a tree that can lead nowhere; none of their texts is repeated.

    That is a variable whose name no shell knows or that looks like the key itself, and a command with an open quote.
    """
    if is_reference(node):
        [(kind, name)] = node.items()
        if why := _fault(kind, name):
            yield ConfigFault(path, f"{name_of(path)} {why}", _REMEDY if kind == "env" else "")
        return
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(node, dict):
        children = node.items()
    elif isinstance(node, list):
        children = enumerate(node)
    for name, value in children:
        yield from broken_references(value, (*path, name))


def _fault(kind: str, name: str) -> str:
    if kind == "env" and looks_like_key(name):
        return "has a key where the name of its variable belongs"
    if kind == "env" and not _VARIABLE.fullmatch(name):
        return "names a variable with other signs than letters, digits and _, or one that begins with a digit"
    if kind == "command" and not _can_be_split(name):
        return "has a command with a quote that is never closed"
    return ""


def _can_be_split(command: str) -> bool:
    try:
        return bool(shlex.split(command))
    except ValueError:
        return False
