r"""Words of a command that is printed to be run, with one meaning in sh, dash, bash and zsh.

Everything that a shell could act on stands inside single quotes, which POSIX defines alike for all of them. What is not
printable is written as ``"$(printf '\302\240')"``: it neither steers the terminal nor gets lost when it is copied.
``$'...'`` is not used, because POSIX shells before 2024 read it as a dollar sign and a string that ends too early.
Source: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/V3_chap02.html, section 2.2.
"""

from __future__ import annotations

import itertools
import re

LONGEST_WORD = 100_000
"""Bytes of one word; Linux refuses to start a program with one of 128 KiB (MAX_ARG_STRLEN)."""


def shell_word(text: str) -> str:
    """Quote a text without NUL as one word, or as nothing if it is empty."""
    groups = itertools.groupby(text, key=lambda letter: letter == "\n" or letter.isprintable())
    runs = ((plain, "".join(letters)) for plain, letters in groups)
    return "".join(_quoted(run) if plain else _printed(run) for plain, run in runs)


def _quoted(text: str) -> str:
    """Quote printable text. ``shlex.quote`` leaves ``=ls`` as it is, which zsh replaces by the path of ls."""
    if re.fullmatch(r"[A-Za-z0-9_./:-]+", text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _printed(text: str) -> str:
    octal = "".join(f"\\{byte:03o}" for byte in text.encode("utf-8", "replace"))
    return f"\"$(printf '{octal}')\""
