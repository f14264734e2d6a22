"""Many records in one request: what the config must be like, and how the request is put together."""

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
from rowcall.templates.compile import TemplateTree, compile_tree


class Grouping:
    """Puts texts into one request, and takes its reply apart.

    Args:
        provider: of the single requests.
        body: ``[request] body``.

    Raises:
        ConfigError: these requests cannot be put together; only its ``input`` may differ between records.
    """

    def __init__(self, provider: GroupProvider, body: Any) -> None:
        self.provider = provider
        self._group = _fit(provider, body)

    def text_of(self, request: httpx.Request) -> str | None:
        """The text that a single request asks about; None where it is no text, and has to go by itself."""
        text = json_values.loads(request.content)[self._group.input]
        return text if isinstance(text, str) else None

    def build(self, data: Mapping[str, Any], texts: Sequence[str], keys: Sequence[str]) -> httpx.Request:
        """One request for several records.

        Args:
            data: one of them.
            texts: what is asked about.
            keys: those of their single calls, of which the one of this call is made.

        Raises:
            TemplateError: a template cannot be rendered.
        """
        single = self.provider.build(data, CallContext(group_key(keys)))
        body = json_values.loads(single.content) | {self._group.input: texts}
        headers = [(name, value) for name, value in single.headers.raw if name.lower() != b"content-length"]
        return httpx.Request(single.method, single.url, headers=headers, content=json_values.dumps(body))

    def read(self, reply: Reply, count: int) -> Outcome:
        """What the reply to such a request gives: see ``GroupProvider``."""
        return self.provider.read_group(reply, self._group, count)


def group_key(keys: Sequence[str]) -> str:
    """The key of a call for several records, 32 hex digits: the same for the same records in the same order."""
    return hashlib.blake2b("\x00".join(keys).encode(), digest_size=16).hexdigest()


def _fit(provider: GroupProvider, body: Any) -> GroupFormat:
    if provider.group is None:
        remedy = 'path = "/embeddings" of the presets openai, openrouter, ollama, vllm and mock; or take [group] out'
        raise ConfigError(Problem("group.size", "these calls take one record each", remedy))
    text = body.get(provider.group.input) if isinstance(body, Mapping) else None
    place = f"request.body.{provider.group.input}"
    if not isinstance(text, str) or compile_tree(text, where=place).constant:
        what = f"{place} must be one template where [group] is set"
        raise ConfigError(Problem(place, what, f'{provider.group.input} = "{{{{ row.text }}}}"'))
    rest = {name: value for name, value in body.items() if name != provider.group.input}
    for tree in (*provider.trees_around_body, compile_tree(rest, where="request.body")):
        _refuse_columns(tree, place)
    return provider.group


def _refuse_columns(tree: TemplateTree, place: str) -> None:
    if tree.columns is None or tree.columns:
        what = f"{tree.where} differs between records, which [group] sends in one call"
        raise ConfigError(Problem(tree.where, what, f"keep {{{{ row... }}}} to {place}, or take [group] out"))
