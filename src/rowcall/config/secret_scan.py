"""Finds settings that look like keys and passwords, which must not leave this machine."""

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
"""A secret contains no spaces and is not a template."""
_LOOKS = re.compile(
    r"\b(?:sk-[\w-]{16,}|AIza[\w-]{30,}|gh[pousr]_\w{30,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}|Bearer\s+[\w.~+/-]{16,}|https?://[^\s/:@]+:[^\s/@]+@)"
    r"|[?&](?i:[\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|sig|signature))=[^\s&#{}\"']{8,}"
)
"""The keys of well-known services (OpenAI, Anthropic, Google, GitHub, Slack, AWS), bearer tokens, JWTs, and URLs that
contain a password or a key in their query."""

_RANDOM = re.compile(r"(?=\w*\d\w*\d)(?=\w*[a-z])[A-Za-z0-9]{24,}", re.ASCII)
"""Letters and digits that nobody would choose as a name."""


def looks_like_key(text: str) -> bool:
    """Whether a short text, such as the name of a variable, looks like a key itself."""
    return bool(_LOOKS.search(text) or _RANDOM.fullmatch(text))


def suspects(node: Any, path: KeyPath = (), *, by_name: bool) -> Iterator[KeyPath]:
    """Yield where a tree of settings has something that looks like a secret. References and templates do not.

    Args:
        node: the tree, or a part of it.
        path: the path of that part.
        by_name: a key with a name like ``api_key`` is enough; otherwise the value must look like a secret.
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
    """Return the number of the first line that contains something like a secret; None if there is none."""
    found = _LOOKS.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None
