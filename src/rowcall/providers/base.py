"""The contract of a provider. What an error reply means is the same for all: see ``classify_error_reply.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from rowcall.model.outcome import Outcome, Reply
from rowcall.providers.classify_error_reply import classify
from rowcall.providers.dialect import GroupFormat
from rowcall.sources.keys import FilePrints
from rowcall.templates.compile import TemplateTree

__all__ = ["CallContext", "GroupProvider", "Provider", "Request", "classify"]

Request = httpx.Request
"""What a provider builds and the client sends."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call of a record.

    Attributes:
        key: ``call.key`` in header templates. It is the same in every try, after a restart, and in every process.
        longer: the last answer was truncated, so this request uses the larger limit of ``on_truncated``, if set.
        bare: attached files are not read; empty texts take their places.
    """

    key: str
    longer: bool = False
    bare: bool = False


class Provider(Protocol):
    """Builds a request from a record and reads the reply. It has no clock and no state, and reads only attached files.

    Attributes:
        target: scheme, host and port, to which limits and outages belong: ``https://api.openai.com``.
        columns: the input columns that its templates use; None if one of them uses the whole row.
        trees: its templates, for ``check_columns``.
        files: identifies a record's attached files; None if none are attached, and then ``build`` never blocks.
    """

    target: str
    columns: frozenset[str] | None
    trees: tuple[TemplateTree, ...]
    files: FilePrints | None

    def build(self, data: Mapping[str, Any], call: CallContext) -> httpx.Request:
        """Build the request for one record.

        Raises:
            TemplateError: a template cannot be rendered for this record, or a file cannot be attached.
        """

    def read(self, reply: Reply) -> Outcome:
        """Read a reply. Never raises, whatever the body contains."""


class GroupProvider(Provider, Protocol):
    """A provider whose requests may ask about many records.

    Attributes:
        group: how; None if each record needs a request of its own.
        trees_around_body: the templates of the URL and the headers.
    """

    group: GroupFormat | None
    trees_around_body: tuple[TemplateTree, ...]

    def read_group(self, reply: Reply, group: GroupFormat, count: int) -> Outcome:
        """Read the reply to a request for several records.

        The value of a success is a tuple of their outcomes, in the order of the request. Its usage is their sum.
        """
