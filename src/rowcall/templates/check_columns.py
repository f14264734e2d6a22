"""Checks before a run that the columns which templates use exist in the input."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from rowcall.model import json_values
from rowcall.model.errors import TemplateError
from rowcall.templates.compile import NameUse, TemplateTree


def check_columns(trees: Iterable[TemplateTree], available: Sequence[str] | None) -> None:
    """Check that every name in the templates is known, before a record is read.

    Columns under ``| default(...)`` or ``is defined`` may be missing.

    Args:
        trees: the templates.
        available: the columns of the input. None if the input does not say; then only other names are checked.

    Raises:
        TemplateError: lists all unknown names, each with a suggestion, and the columns there are.
    """
    unknown = [use for tree in trees for use in tree.uses if _is_unknown(use, available)]
    if not unknown:
        return
    lines = [f"{use.where}: {_unknown_message(use, available or ())}" for use in unknown]
    listed = ", ".join((available or ())[:50]) + (", ..." if available and len(available) > 50 else "")
    remedy = f"The columns are: {listed}" if available else "A column is written {{ row.NAME }}."
    raise TemplateError("\n".join(lines), remedy=remedy)


def union(trees: Iterable[TemplateTree]) -> frozenset[str] | None:
    """Return the columns that several templates use; None if one of them uses the whole row."""
    used: frozenset[str] = frozenset()
    for tree in trees:
        if tree.columns is None:
            return None
        used |= tree.columns
    return used


def _is_unknown(use: NameUse, available: Sequence[str] | None) -> bool:
    if use.column is None:
        return use.name != "row"
    return available is not None and use.column not in available and not use.optional


def _unknown_message(use: NameUse, available: Sequence[str]) -> str:
    if use.column is None and use.name in available:
        return f"unknown name {use.name!r}; the column is written {_row_expression(use.name)}"
    name = use.name if use.column is None else use.column
    close = difflib.get_close_matches(name, available, n=1, cutoff=0.5)
    what = f"unknown name {name!r}" if use.column is None else f"no column {name!r}"
    return what + (f"; did you mean {_row_expression(close[0])}?" if close else "")


def _row_expression(column: str) -> str:
    return f"row.{column}" if column.isidentifier() else f"row[{json_values.dumps(column).decode()}]"
