"""Where in the config a problem is, when its words begin with the path of a setting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rowcall.config import Config, KeyPath
from rowcall.model.errors import ConfigError, Problem, RowcallError, TemplateError

_PATH = re.compile(r"[a-z_]+(?:\.[\w-]+|\[\d+\])+")
_PART = re.compile(r"\[(\d+)\]|([\w-]+)")


def problems_of(error: RowcallError, config: Config) -> Iterator[Problem]:
    """The faults that an error tells of, each with the file and line that it is about where one is named."""
    if isinstance(error, ConfigError):
        yield from (_located(problem, config) for problem in error.problems)
        return
    *lines, last = error.message.split("\n")
    for line in lines:
        yield _of_line(line, "", config)
    yield _of_line(last, error.remedy, config)


@contextmanager
def placed(config: Config) -> Iterator[None]:
    """Templates that do not fit are reported with the lines that they stand on.

    Raises:
        ConfigError: instead of a TemplateError.
    """
    try:
        yield
    except TemplateError as error:
        raise ConfigError(*problems_of(error, config)) from None


def _located(problem: Problem, config: Config) -> Problem:
    """A problem whose place is the path of a setting gets its line."""
    if not _PATH.fullmatch(problem.where):
        return problem
    return Problem(config.where(_path(problem.where)), f"{problem.where}: {problem.what}", problem.remedy)


def _of_line(line: str, remedy: str, config: Config) -> Problem:
    found = _PATH.match(line)
    named = found is not None and line[found.end() : found.end() + 2] == ": "
    where = config.where(_path(found[0])) if found and named else str(config.file)
    return Problem(where, line, remedy)


def _path(dotted: str) -> KeyPath:
    return tuple(int(number) if number else name for number, name in _PART.findall(dotted))
