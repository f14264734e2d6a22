"""Keys and passwords that were written out, by the looks of them: what must not leave this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rowcall.config.key_lines import KeyPath
from rowcall.config.references import is_reference

_NAMED = re.compile(
    r"(?:^|[-_.])(?:api[-_]?key|key|token|secret|passw(?:or)?d|pwd|auth|authorization|credentials?)$", re.IGNORECASE
)
_LONG = re.compile(r"[^\s{}]{8,}")
"""A secret has no spaces in it, and is no template."""
_LOOKS = re.compile(
    r"\b(?:sk-[\w-]{16,}|AIza[\w-]{30,}|gh[pousr]_\w{30,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}|Bearer\s+[\w.~+/-]{16,}|https?://[^\s/:@]+:[^\s/@]+@)"
    r"|[?&](?i:[\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|sig|signature))=[^\s&#{}\"']{8,}"
)
"""How well-known services write their keys (OpenAI, Anthropic, Google, GitHub, Slack, AWS), tokens, and URLs with a
password, or with a key in their query."""

_RANDOM = re.compile(r"(?=\w*\d\w*\d)(?=\w*[a-z])[A-Za-z0-9]{24,}", re.ASCII)
"""Letters and digits that nobody would choose as a name."""


def looks_like_key(text: str) -> bool:
    """Whether a short text, such as the name of a variable, looks like a key itself."""
    return bool(_LOOKS.search(text) or _RANDOM.fullmatch(text))


def suspects(node: Any, path: KeyPath = (), *, by_name: bool) -> Iterator[KeyPath]:
    """Where in a tree of settings something looks like a secret; references and templates are none.

    Args:
        node: the tree, or a part of it.
        path: where that part is.
        by_name: a key named like ``api_key`` is enough; else a value must look like one.
    """
    if isinstance(node, dict) and not is_reference(node):
        for name, value in node.items():
            named = by_name and isinstance(value, str) and _NAMED.search(name) and _LONG.fullmatch(value)
            yield from [(*path, name)] if named else suspects(value, (*path, name), by_name=by_name)
    elif isinstance(node, list):
        for number, item in enumerate(node):
            yield from suspects(item, (*path, number), by_name=by_name)
    elif isinstance(node, str) and _LOOKS.search(node):
        yield path


def suspect_line(text: str) -> int | None:
    """The number of the first line of a text in which something looks like a secret."""
    found = _LOOKS.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None
