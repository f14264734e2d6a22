"""Finds the answer in a reply, parses it, and checks it against schema and assertions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from rowcall.model import json_values
from rowcall.model.errors import ConfigError, Problem

Extract = Callable[[Any], Any]


class Unacceptable(Exception):
    """An answer that cannot be accepted; ``reason`` is one of ``REASONS``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """Reads the answer from the document of a reply.

    Attributes:
        extract: finds the answer; None takes the whole document.
        path: ``extract`` as written, for messages.
        parse: whether a text that is found is JSON.
        validate: raises Unacceptable if the answer does not match the schema.
        assertions: expressions that must be true for the document, with their text.
        verbatim: the whole body is the answer, as text.
    """

    extract: Extract | None
    path: str
    parse: bool
    validate: Callable[[Any], None] | None
    assertions: tuple[tuple[str, Extract], ...] = ()
    verbatim: bool = False

    def answer(self, document: Any) -> Any:
        """Return the answer in a document; None if there is none.

        Raises:
            Unacceptable: an assertion is false, or the text is not valid JSON or does not match the schema.
        """
        for words, expression in self.assertions:
            if _is_false(expression(document)):
                raise Unacceptable("assertion", f"{words} does not hold")
        found = document if self.extract is None else self.extract(document)
        if self.parse and isinstance(found, str) and found.strip():
            found = parse_text(found)
        if not isinstance(found, str | None):
            _refuse_unwritable(found)
        if found is not None and self.validate:
            self.validate(found)
        return found

    def text(self, document: Any) -> str:
        """Return the answer in a document as text, unparsed; empty if there is none."""
        try:
            found = document if self.extract is None else self.extract(document)
            return found if isinstance(found, str) else "" if found is None else json_values.dumps(found).decode()
        except (Unacceptable, TypeError):
            return ""


def _refuse_unwritable(found: Any) -> None:
    """Refuse an answer that could not be stored as JSON: NaN, too large a number, or more than 250 levels deep."""
    try:
        json_values.dumps(found)
    except (TypeError, ValueError) as error:
        raise Unacceptable("not_json", f"the answer cannot be stored as JSON: {error}") from error


def _is_false(value: Any) -> bool:
    """Follow JMESPath: null, false and empty values are false; 0 is true. Source: https://jmespath.org/specification.html."""
    return value is None or value is False or value in ("", [], {})


def make_reply_reader(
    extract: str | None, parse: str | None, schema: dict[str, Any] | bool | None, assertions: Iterable[str] = ()
) -> ReplyReader:
    """Make the reader for the keys of ``[response]``.

    Raises:
        ConfigError: a path is not a JMESPath, or the schema is not valid.
    """
    return ReplyReader(
        extract=None if extract is None else compile_path(extract),
        path=extract or "",
        parse=parse == "json" or (parse is None and schema is not None),
        validate=None if schema is None else compile_schema(schema),
        assertions=tuple((words, compile_path(words, "response.assert")) for words in assertions),
        verbatim=parse == "text" and extract is None,
    )


def compile_path(path: str, where: str = "response.extract") -> Extract:
    """Compile a JMESPath. Paths of only names and indexes (``a.b[0].c``) run without jmespath, ten times as fast.

    The result raises Unacceptable if the path cannot be applied to a document (``length(@)`` of a number).

    Args:
        path: the expression.
        where: its place in the config, for messages.

    Raises:
        ConfigError: it is not a JMESPath.
    """
    if _PLAIN_PATH.fullmatch(path):
        return _follow_steps([int(part) if part.isdigit() else part for part in _PLAIN_STEP.findall(path)])
    try:
        compiled = jmespath.compile(path)
    except JMESPathError as error:
        what = f"{path!r} is not a JMESPath ({str(error).splitlines()[0]})"
        raise ConfigError(Problem(where, what, 'An example: "choices[0].message.content".')) from error

    def extract(document: Any) -> Any:
        try:
            return compiled.search(document)
        except (JMESPathError, ValueError, TypeError, ArithmeticError) as error:  # ceil() of infinity, for one
            raise Unacceptable("extract_failed", f"{where} {path!r}: {error}") from error

    return extract


_PLAIN_PATH = re.compile(r"[A-Za-z_]\w*(\[\d+\])*(\.[A-Za-z_]\w*(\[\d+\])*)*", re.ASCII)
_PLAIN_STEP = re.compile(r"\w+", re.ASCII)


def _follow_steps(steps: list[str | int]) -> Extract:
    def extract(document: Any) -> Any:
        for step in steps:
            if isinstance(document, dict):
                document = document.get(step)
            elif isinstance(document, list) and isinstance(step, int) and step < len(document):
                document = document[step]
            else:
                return None
        return document

    return extract


def parse_text(text: str) -> Any:
    """Parse the JSON in a text: the whole text, a code fence, or the only fenced block in prose.

    Raises:
        Unacceptable: none of these is valid JSON.
    """
    for candidate in _candidates(text.strip()):
        try:
            return json_values.loads(candidate)
        except ValueError as error:
            last = error
    raise Unacceptable("not_json", f"the answer is not valid JSON ({last}): {text[:200]}")


def _candidates(text: str) -> Iterator[str]:
    yield text
    if whole := _FENCED_WHOLE.fullmatch(text):
        yield whole[1]
    if len(blocks := _FENCED.findall(text)) == 1:
        yield blocks[0]


_FENCED_WHOLE = re.compile(r"```\w*\s*\n(.*)\n?\s*```", re.DOTALL)
_FENCED = re.compile(r"^\s*```\w*\s*\n(.*?)^\s*```", re.DOTALL | re.MULTILINE)


def compile_schema(schema: dict[str, Any] | bool) -> Callable[[Any], None]:
    """Compile a JSON Schema (drafts 4, 6, 7). It fills in no defaults and fetches nothing.

    Raises:
        ConfigError: it is not a JSON Schema.
    """
    import fastjsonschema

    try:
        check = fastjsonschema.compile(schema, handlers=_NOTHING_FETCHED, use_default=False)
    except Exception as error:
        what = f"is not a JSON Schema ({error})"
        raise ConfigError(
            Problem("response.schema", what, "Correct the schema; references to the web do not work.")
        ) from error

    def validate(answer: Any) -> None:
        try:
            check(answer)
        except fastjsonschema.JsonSchemaValueException as error:
            # the path in the answer, the rule, and the value that is there
            value = json_values.dumps(error.value).decode()[:200]
            raise Unacceptable("schema", f"answer{error.message.removeprefix('data')}, but is {value}") from error

    return validate


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is on the web")


_NOTHING_FETCHED = dict.fromkeys(("http", "https", "ftp", "file"), _refuse_to_fetch)
