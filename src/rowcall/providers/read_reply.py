"""From the document of a reply to the answer: find it, parse it, hold it against a schema."""

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
    """An answer that breaks the acceptance contract; ``reason`` is one of failures.REASONS."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """How an answer is read from the document of a reply.

    Attributes:
        extract: finds it; None takes the whole document.
        path: ``extract`` as written, for messages.
        parse: whether the text found is JSON.
        validate: raises Unacceptable where the answer does not follow the schema.
        assertions: what must hold for the document, with its words.
        verbatim: the body is the answer, as text.
    """

    extract: Extract | None
    path: str
    parse: bool
    validate: Callable[[Any], None] | None
    assertions: tuple[tuple[str, Extract], ...] = ()
    verbatim: bool = False

    def answer(self, document: Any) -> Any:
        """The answer in a document; None where there is none.

        Raises:
            Unacceptable: an assertion does not hold, or the text is no JSON, or does not follow the schema.
        """
        self._assert(document)
        found = document if self.extract is None else self.extract(document)
        if self.parse and isinstance(found, str) and found.strip():
            found = parse_text(found)
        if not isinstance(found, str | None):
            _refuse_unwritable(found)
        if found is not None and self.validate:
            self.validate(found)
        return found

    def text(self, document: Any) -> str:
        """The answer in a document as it came; empty where there is none."""
        try:
            found = document if self.extract is None else self.extract(document)
            return found if isinstance(found, str) else "" if found is None else json_values.dumps(found).decode()
        except (Unacceptable, TypeError):
            return ""

    def _assert(self, document: Any) -> None:
        for words, expression in self.assertions:
            if _is_false(expression(document)):
                raise Unacceptable("assertion", f"{words} does not hold")


def _refuse_unwritable(found: Any) -> None:
    """Nothing is taken for an answer that could not be written as JSON again: too deep (250 levels), too large, NaN."""
    try:
        json_values.dumps(found)
    except (TypeError, ValueError) as error:
        raise Unacceptable("not_json", f"the answer is no JSON that can be kept: {error}") from error


def _is_false(value: Any) -> bool:
    """What JMESPath takes for false: null, false, and what is empty; 0 is true."""
    return value is None or value is False or value in ("", [], {})


def make_reading(
    extract: str | None, parse: str | None, schema: dict[str, Any] | bool | None, assertions: Iterable[str] = ()
) -> ReplyReader:
    """A reading by the keys of ``[response]``.

    Raises:
        ConfigError: the path or the schema is not one.
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
    """A JMESPath; names and indexes (``a.b[0].c``) are looked up without it, which is ten times as fast.

    What it returns raises Unacceptable where the path cannot be applied to a document (``length(@)`` of a number).

    Args:
        path: as written.
        where: its place in the config, for messages.

    Raises:
        ConfigError: not a JMESPath.
    """
    if _PLAIN_PATH.fullmatch(path):
        return _steps([int(part) if part.isdigit() else part for part in _PLAIN_STEP.findall(path)])
    try:
        compiled = jmespath.compile(path)
    except JMESPathError as error:
        what = f"{path!r} is no JMESPath ({str(error).splitlines()[0]})"
        raise ConfigError(Problem(where, what, 'Write it as in "choices[0].message.content".')) from error

    def extract(document: Any) -> Any:
        try:
            return compiled.search(document)
        except (JMESPathError, ValueError, TypeError, ArithmeticError) as error:  # ceil() of infinity, for one
            raise Unacceptable("extract_failed", f"{where} {path!r}: {error}") from error

    return extract


_PLAIN_PATH = re.compile(r"[A-Za-z_]\w*(\[\d+\])*(\.[A-Za-z_]\w*(\[\d+\])*)*", re.ASCII)
_PLAIN_STEP = re.compile(r"\w+", re.ASCII)


def _steps(steps: list[str | int]) -> Extract:
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
    """JSON in the text of an answer: as it stands, in a code fence, or in the one fenced block of some prose.

    Raises:
        Unacceptable: it is none.
    """
    for candidate in _candidates(text.strip()):
        try:
            return json_values.loads(candidate)
        except ValueError as error:
            last = error
    raise Unacceptable("not_json", f"the answer is no JSON ({last}): {text[:200]}")


def _candidates(text: str) -> Iterator[str]:
    yield text
    if whole := _FENCED_WHOLE.fullmatch(text):
        yield whole[1]
    if len(blocks := _FENCED.findall(text)) == 1:
        yield blocks[0]


_FENCED_WHOLE = re.compile(r"```\w*\s*\n(.*)\n?\s*```", re.DOTALL)
_FENCED = re.compile(r"^\s*```\w*\s*\n(.*?)^\s*```", re.DOTALL | re.MULTILINE)


def compile_schema(schema: dict[str, Any] | bool) -> Callable[[Any], None]:
    """A JSON Schema (drafts 4, 6, 7); no defaults are filled in, and nothing is fetched.

    Raises:
        ConfigError: not a schema.
    """
    import fastjsonschema

    try:
        check = fastjsonschema.compile(schema, handlers=_NOTHING_FETCHED, use_default=False)
    except Exception as error:
        what = f"not a JSON Schema ({error})"
        raise ConfigError(
            Problem("response.schema", what, "Correct the schema; it may not refer to the web.")
        ) from error

    def validate(answer: Any) -> None:
        try:
            check(answer)
        except fastjsonschema.JsonSchemaValueException as error:
            raise Unacceptable("schema", _broken_rule(error.message, error.value)) from error

    return validate


def _broken_rule(message: str, value: Any) -> str:
    """The failing path in the answer, the rule, and the value that is there."""
    return f"answer{message.removeprefix('data')}, but is {json_values.dumps(value).decode()[:200]}"


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is on the web")


_NOTHING_FETCHED = dict.fromkeys(("http", "https", "ftp", "file"), _refuse)
