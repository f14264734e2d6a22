"""The contract of a provider; ``error_replies.py`` beside it has what all of them share: what an error reply means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from rowcall.model.outcome import Outcome, Reply
from rowcall.providers.dialect import GroupFormat
from rowcall.providers.error_replies import classify
from rowcall.sources.keys import FilePrints
from rowcall.templates.compile import TemplateTree

__all__ = ["CallContext", "GroupProvider", "Provider", "Request", "classify"]

Request = httpx.Request
"""What a provider builds and the client sends."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call of a record.

    Attributes:
        key: what a header template knows as ``call.key``: stable over tries, restarts and processes.
        longer: an answer was cut before, so that the request asks for a longer one where the config says how long.
        bare: no file is read, and empty texts stand in the places of attached ones.
    """

    key: str
    longer: bool = False
    bare: bool = False


class Provider(Protocol):
    """Builds a request from a record and reads the reply; no clock, no state, no I/O but to read attached files.

    Attributes:
        target: scheme, host and port that limits and outages belong to, ``https://api.openai.com``.
        columns: the input columns its templates use; None where one of them uses the whole row.
        trees: its templates, for ``templates.check_columns``.
        files: what a record's attached files are known by; None where none are attached, and ``build`` never blocks.
    """

    target: str
    columns: frozenset[str] | None
    trees: tuple[TemplateTree, ...]
    files: FilePrints | None

    def build(self, data: Mapping[str, Any], call: CallContext) -> httpx.Request:
        """The request for one record.

        Raises:
            TemplateError: a template cannot be rendered for this record, or a file not attached.
        """

    def read(self, reply: Reply) -> Outcome:
        """What a reply gives. Never raises, whatever the body holds."""


class GroupProvider(Provider, Protocol):
    """One whose requests may ask for many records.

    Attributes:
        group: how; None: each by itself.
        trees_around_body: the templates of the URL and the headers.
    """

    group: GroupFormat | None
    trees_around_body: tuple[TemplateTree, ...]

    def read_group(self, reply: Reply, group: GroupFormat, count: int) -> Outcome:
        """What the reply to a request for several records gives, as ``read``.

        The value of a success is a tuple of their outcomes, in the order of the request; its usage is theirs together.
        """
