"""What templates are made of: Jinja2 in its sandbox, without a clock or chance, and what its values become.

Where a value becomes text: null is nothing, booleans are ``true`` and ``false``, numbers are as they were written,
lists and tables are JSON; NaN, Infinity and what is no JSON are an error, never a word.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rowcall.model import json_values


def text_of(value: Any) -> str:
    """A value as the text that goes into a template.

    Raises:
        ValueError: NaN, Infinity, and what is no JSON.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises: it is a strict one
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(_finite(value))
    return json_values.dumps(plain(value)).decode()


def _finite(number: float) -> float:
    if type(number) is float and not math.isfinite(number):
        raise ValueError(f"the value is {number}, which is no number that JSON has")
    return number


def plain(value: Any) -> Any:
    """What an expression gave, as JSON: generators become lists, a missing value is an error.

    Raises:
        ValueError: NaN, Infinity, and what is no JSON.
    """
    if type(value) is str or value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | jinja2.Undefined):
        return text_of(value)
    if isinstance(value, int | float):
        return _finite(value)
    if isinstance(value, Mapping):
        return {text_of(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range | Iterator):
        return [plain(item) for item in value]
    raise ValueError(f"the value is a {type(value).__name__}, which is no JSON")


class _Sandbox(ImmutableSandboxedEnvironment):
    """Looks up keys, and never the methods of a table: ``row.items`` is the column."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping):
            return self.getitem(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if not isinstance(obj, Mapping):
            return super().getitem(obj, argument)
        try:
            return obj[argument]
        except (KeyError, TypeError):
            return self.undefined(missing_name_message(obj, argument), obj, argument)


def missing_name_message(table: Mapping[str, Any], name: Any) -> str:
    """What is said of a name that a table lacks."""
    there = ", ".join(map(str, list(table)[:20])) or "nothing"
    return f"there is no {name!r}; there is: {there}"


def _as_json(value: Any, indent: int | None = None) -> str:
    """The filter ``tojson``: JSON with its characters as they are, not escaped for HTML."""
    given = plain(value)
    return json_values.dumps(given).decode() if indent is None else _indented(given, " " * indent, "\n")


def _indented(value: Any, step: str, margin: str) -> str:
    inner = margin + step
    if isinstance(value, dict) and value:
        lines = (f"{json_values.dumps(name).decode()}: {_indented(item, step, inner)}" for name, item in value.items())
        return "{" + ",".join(inner + line for line in lines) + margin + "}"
    if isinstance(value, list) and value:
        return "[" + ",".join(inner + _indented(item, step, inner) for item in value) + margin + "]"
    return json_values.dumps(value).decode()


def _joined(value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    """The filter ``join``, with values as text the way this module has it."""
    items = value if attribute is None else (sandbox(None).getitem(item, attribute) for item in value)
    return text_of(d).join(map(text_of, items))


def _formatted(value: Any, *args: Any, **kwargs: Any) -> str:
    """The filter ``format``, where null is nothing."""
    named = {name: "" if item is None else item for name, item in kwargs.items()}
    return text_of(value) % (named or tuple("" if item is None else item for item in args))


def _on_text(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of Jinja that makes text of its value first, with null as nothing."""
    place = 1 if hasattr(filter_, "jinja_pass_arg") else 0

    @functools.wraps(filter_)
    def on_text(*args: Any, **kwargs: Any) -> Any:
        return filter_(*args[:place], text_of(args[place]), *args[place + 1 :], **kwargs)

    return on_text


_TEXT_FILTERS = (
    *("capitalize", "center", "e", "escape", "forceescape", "indent", "lower", "replace", "string", "striptags"),
    *("title", "trim", "truncate", "upper", "urlize", "wordcount", "wordwrap"),
)


@functools.cache
def sandbox(escape: Callable[[str], str] | None) -> ImmutableSandboxedEnvironment:
    """Where templates are compiled; ``escape`` is applied to the text of every value."""
    made = _Sandbox(
        undefined=jinja2.StrictUndefined,
        finalize=text_of if escape is None else lambda value: escape(text_of(value)),
        keep_trailing_newline=True,
        autoescape=False,
        cache_size=0,
    )
    del made.globals["lipsum"], made.filters["random"]
    made.filters |= {name: _on_text(made.filters[name]) for name in _TEXT_FILTERS}
    made.filters |= {"tojson": _as_json, "join": _joined, "format": _formatted}
    return made
