"""The Jinja2 environment of templates: sandboxed, without a clock or random numbers.

Jinja's own filters turn None into the word "None" and escape JSON for HTML. The filters that are replaced here follow
``values.py`` instead: null is the empty text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rowcall.model import json_values
from rowcall.templates.values import plain, text_of


class _Sandbox(ImmutableSandboxedEnvironment):
    """Looks up keys of a table and never its methods: ``row.items`` is the column ``items``, not ``dict.items``."""

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
    """Say that a table has no such name, and which names it has."""
    names = ", ".join(map(str, list(table)[:20])) or "none"
    return f"there is no {name!r}; the names are: {names}"


def _tojson_filter(value: Any, indent: int | None = None) -> str:
    """JSON with its characters as they are. Jinja's own filter escapes them for HTML."""
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


def _join_filter(value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    items = value if attribute is None else (sandbox(None).getitem(item, attribute) for item in value)
    return text_of(d).join(map(text_of, items))


def _format_filter(value: Any, *args: Any, **kwargs: Any) -> str:
    named = {name: "" if item is None else item for name, item in kwargs.items()}
    return text_of(value) % (named or tuple("" if item is None else item for item in args))


def _on_text(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter of Jinja's so that it gets its value as text; null is the empty text."""
    # Jinja passes some filters its context or environment first; those carry this mark.
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
    """Return the environment in which templates are compiled.

    Args:
        escape: applied to the text of every value, as in the path of a URL.
    """
    made = _Sandbox(
        undefined=jinja2.StrictUndefined,
        finalize=text_of if escape is None else lambda value: escape(text_of(value)),
        keep_trailing_newline=True,
        autoescape=False,
        cache_size=0,
    )
    del made.globals["lipsum"], made.filters["random"]  # random: the same record must give the same request
    made.filters |= {name: _on_text(made.filters[name]) for name in _TEXT_FILTERS}
    made.filters |= {"tojson": _tojson_filter, "join": _join_filter, "format": _format_filter}
    return made
