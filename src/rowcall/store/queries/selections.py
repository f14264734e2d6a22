"""The jobs that a person means by a ``Selection``."""

from __future__ import annotations

from typing import Any

from rowcall.model.errors import StoreError
from rowcall.model.job import Status
from rowcall.store.queries.base import Query, Statement
from rowcall.store.types import Selected, Selection

_OF_KIND = "SELECT rowid FROM jobs NOT INDEXED WHERE kind = :kind"
_BY_WORDS = """
    SELECT rowid FROM jobs WHERE rowid IN (
        SELECT rowid FROM jobs WHERE kind = :kind AND id IN :words
        UNION ALL SELECT rowid FROM jobs WHERE kind = :kind AND reason IN :words)
"""
# One pass over the jobs: the counts by status, then rows without a status for the sample.
_SELECTED = """
    WITH chosen AS MATERIALIZED (SELECT rowid AS row, status, id FROM jobs WHERE rowid IN (CHOSEN))
    SELECT status, count(*), '' FROM chosen GROUP BY status
    UNION ALL SELECT * FROM (SELECT '', 0, id FROM chosen ORDER BY row LIMIT 5) AS sample
"""
_UNMATCHED = """
    SELECT asked.value FROM EACH(:words) AS asked
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE kind = :kind AND id = asked.value)
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE kind = :kind AND reason = asked.value)
"""


def rows_of(kind: str, selection: Selection) -> tuple[str, dict[str, Any]]:
    """A query for the rows of a selection, and its parameters. Words and cells are never a part of its text.

    Raises:
        StoreError: a word or a cell has a NUL character, which no key and no reason can contain.
    """
    words, cells = selection.reasons_or_keys, selection.where
    if any("\0" in text for text in (*words, *(text for cell in cells for text in cell))):
        raise StoreError("a key, a reason or a cell cannot contain a NUL character")
    query = _BY_WORDS if words else _OF_KIND
    wanted: dict[str, Any] = {"kind": kind, "words": list(words)}
    if selection.statuses:
        query += " AND status IN :statuses"
        wanted["statuses"] = [status.value for status in selection.statuses]
    if selection.batch is not None:
        query += " AND batch = :batch"
        wanted["batch"] = selection.batch
    if cells:
        query += " AND HAS_CELLS"
        wanted |= {"columns": [column for column, _ in cells], "cells": [text for _, text in cells]}
    return query, wanted


def select(kind: str, selection: Selection) -> Query[Selected]:
    """What a selection holds."""
    query, wanted = rows_of(kind, selection)
    found = (yield Statement(_SELECTED.replace("CHOSEN", query), **wanted)).rows
    words = selection.reasons_or_keys
    unmatched = {word for (word,) in (yield Statement(_UNMATCHED, kind=kind, words=list(words))).rows}
    return Selected(
        {Status(status): count for status, count, _ in found if status},
        tuple(key for status, _, key in found if not status),
        tuple(word for word in words if word in unmatched),
    )
