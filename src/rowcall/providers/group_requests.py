"""Many records in one request: which configs allow it, how the request is put together, how its reply is split."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from rowcall.model import json_values
from rowcall.model.errors import ConfigError, Problem
from rowcall.model.outcome import Outcome, Reply
from rowcall.providers.base import CallContext, GroupProvider
from rowcall.providers.dialect import GroupFormat
from rowcall.providers.read_reply import Unacceptable
from rowcall.templates.compile import TemplateTree, compile_tree


class Grouping:
    """Puts the texts of several records into one request, and reads its reply.

    Args:
        provider: builds the requests of single records.
        body: ``[request] body``.

    Raises:
        ConfigError: the requests cannot be combined, because they differ in more than their ``input``.
    """

    def __init__(self, provider: GroupProvider, body: Any) -> None:
        self.provider = provider
        self._format = _checked_format(provider, body)

    def text_of(self, request: httpx.Request) -> str | None:
        """Return the text that a single request asks about; None if it is not a text and must be sent alone."""
        text = json_values.loads(request.content)[self._format.input]
        return text if isinstance(text, str) else None

    def build(self, data: Mapping[str, Any], texts: Sequence[str], keys: Sequence[str]) -> httpx.Request:
        """Build one request for several records.

        Args:
            data: any one of the records.
            texts: the texts to ask about.
            keys: the call keys of the records, from which the key of this call is made.

        Raises:
            TemplateError: a template cannot be rendered.
        """
        single = self.provider.build(data, CallContext(group_key(keys)))
        body = json_values.loads(single.content) | {self._format.input: texts}
        headers = [(name, value) for name, value in single.headers.raw if name.lower() != b"content-length"]
        return httpx.Request(single.method, single.url, headers=headers, content=json_values.dumps(body))

    def read(self, reply: Reply, count: int) -> Outcome:
        """Read the reply to a request for ``count`` records; see ``GroupProvider``."""
        return self.provider.read_group(reply, self._format, count)


def group_key(keys: Sequence[str]) -> str:
    """Return the key of a call for several records, 32 hex digits. The same records in the same order give the same."""
    return hashlib.blake2b("\x00".join(keys).encode(), digest_size=16).hexdigest()


def split_document(document: Any, group: GroupFormat, count: int) -> Sequence[Any]:
    """Split the reply for many records into documents like those of single requests, in the order of the request.

    Raises:
        Unacceptable: there are fewer or more answers than records, or their indexes are wrong.
    """
    listed = document.get(group.answers) if isinstance(document, dict) else None
    answers = [answer for answer in listed if isinstance(answer, dict)] if isinstance(listed, list) else []
    by_index = {answer.get(group.index): answer for answer in answers if type(answer.get(group.index)) is int}
    if len(answers) != count or by_index.keys() != set(range(count)):
        what = f"{group.answers!r} in the reply does not have one answer for each of the {count} records"
        raise Unacceptable("extract_failed", what)
    return [{**document, group.answers: [by_index[number]]} for number in range(count)]


def _checked_format(provider: GroupProvider, body: Any) -> GroupFormat:
    if provider.group is None:
        remedy = 'path = "/embeddings" of the presets openai, openrouter, ollama, vllm and mock; or remove [group]'
        raise ConfigError(Problem("group.size", "these calls take one record each", remedy))
    text = body.get(provider.group.input) if isinstance(body, Mapping) else None
    where = f"request.body.{provider.group.input}"
    if not isinstance(text, str) or compile_tree(text, where=where).constant:
        what = f"{where} must be one template if [group] is set"
        raise ConfigError(Problem(where, what, f'{provider.group.input} = "{{{{ row.text }}}}"'))
    rest = {name: value for name, value in body.items() if name != provider.group.input}
    for tree in (*provider.trees_around_body, compile_tree(rest, where="request.body")):
        _refuse_columns(tree, where)
    return provider.group


def _refuse_columns(tree: TemplateTree, where: str) -> None:
    if tree.columns is None or tree.columns:
        what = f"{tree.where} differs between records, which [group] sends in one call"
        remedy = f"use {{{{ row... }}}} only in {where}, or remove [group]"
        raise ConfigError(Problem(tree.where, what, remedy))
