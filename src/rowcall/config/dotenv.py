r"""The file ``.env``: ``NAME=value`` lines for variables that people do not want to export.

``export`` before a name is allowed. Blank lines and lines that start with ``#`` are skipped. A value in single quotes
is taken literally. In double quotes the escapes ``\n``, ``\"`` and ``\\`` work. A value without quotes ends
before `` #``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rowcall.model.errors import ConfigError, Problem

_LINE = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*
        (?:'(?P<single>[^']*)'[ \t]*(?:\#.*)?
          |"(?P<double>(?:\\.|[^"\\])*)"[ \t]*(?:\#.*)?
          |(?P<plain>(?!['"]).*?)(?:[ \t]*(?<=[ \t])\#.*)?)\s*""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n"}


def environment(env_file: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environ``, completed by those of a ``.env`` file if there is one.

    Raises:
        ConfigError: the file cannot be read, or lists every line that cannot. It repeats no value.
    """
    return {**_read(env_file), **environ}


def _read(env_file: Path) -> dict[str, str]:
    try:
        text = env_file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(Problem(str(env_file), f"cannot be read: {why}")) from None
    return _parse(text, str(env_file))


def _parse(text: str, name: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if found := _LINE.fullmatch(line):
            variables[found["name"]] = _value(found)
        else:
            problems.append(
                Problem(f"{name}:{number}", "is not a line of the form NAME=value", 'example: API_KEY="..."')
            )
    if problems:
        raise ConfigError(*problems)
    return variables


def _value(found: re.Match[str]) -> str:
    if found["double"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), found["double"])
    return found["single"] if found["single"] is not None else found["plain"]
