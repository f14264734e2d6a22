"""Finds the line of the config that a problem is about, if its message begins with the path of a setting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rowcall.config import Config, KeyPath
from rowcall.model.errors import ConfigError, Problem, RowcallError, TemplateError

_PATH = re.compile(r"[a-z_]+(?:\.[\w-]+|\[\d+\])+")
_PART = re.compile(r"\[(\d+)\]|([\w-]+)")


def problems_of(error: RowcallError, config: Config) -> Iterator[Problem]:
    """Yield the problems that an error reports, each with the file, and the line if it names a setting."""
    if isinstance(error, ConfigError):
        for problem in error.problems:
            if _PATH.fullmatch(problem.where):
                where = config.where(_key_path(problem.where))
                problem = Problem(where, f"{problem.where}: {problem.what}", problem.remedy)
            yield problem
        return
    *lines, last = error.message.split("\n")
    for line in lines:
        yield _problem_of_line(line, "", config)
    yield _problem_of_line(last, error.remedy, config)


@contextmanager
def with_config_lines(config: Config) -> Iterator[None]:
    """Report templates that do not fit the input with the lines of the config that they stand on.

    Raises:
        ConfigError: instead of a TemplateError.
    """
    try:
        yield
    except TemplateError as error:
        raise ConfigError(*problems_of(error, config)) from None


def _problem_of_line(line: str, remedy: str, config: Config) -> Problem:
    found = _PATH.match(line)
    named = found is not None and line[found.end() : found.end() + 2] == ": "
    where = config.where(_key_path(found[0])) if found and named else str(config.file)
    return Problem(where, line, remedy)


def _key_path(dotted: str) -> KeyPath:
    return tuple(int(number) if number else name for number, name in _PART.findall(dotted))
