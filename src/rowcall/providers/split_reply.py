"""The reply to a request for many records, taken apart: for each a document like that of a request of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rowcall.providers.dialect import GroupFormat
from rowcall.providers.read_reply import Unacceptable


def split_document(document: Any, group: GroupFormat, count: int) -> Sequence[Any]:
    """The document of each record, in the order of the request.

    Raises:
        Unacceptable: fewer or more answers than records, or indexes that are not theirs.
    """
    listed = document.get(group.answers) if isinstance(document, dict) else None
    answers = [answer for answer in listed if isinstance(answer, dict)] if isinstance(listed, list) else []
    by_index = {answer.get(group.index): answer for answer in answers if type(answer.get(group.index)) is int}
    if len(answers) != count or by_index.keys() != set(range(count)):
        what = f"{group.answers!r} in the reply does not have one answer for each of the {count} records"
        raise Unacceptable("extract_failed", what)
    return [{**document, group.answers: [by_index[number]]} for number in range(count)]
