"""The lines of an OpenAI batch file: each names its own URL and body, and its whole reply is the answer.

Source: the Batch API's guide. A 2xx is a line's answer whatever its body says, as it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.model import json_values
from rowcall.model.outcome import Outcome, Reply, Success
from rowcall.providers.base import CallContext
from rowcall.providers.build_request import make_request, parse_base_url
from rowcall.providers.dialect import Operation, Preset
from rowcall.providers.http import HttpProvider
from rowcall.providers.openai import ANY_OPERATION
from rowcall.templates.compile import union

LINES = Preset(PRESET_DEFAULTS["openai-batch"], operations={"": Operation(dialect=ANY_OPERATION, needs_body=False)})
_SENT = frozenset({"url", "body"})


class BatchFileProvider(HttpProvider):
    """Sends the ``body`` of a line to its ``url`` as they are; an answer is ``{status_code, request_id, body}``.

    Args:
        base_url: where the lines' URLs are joined to; what it ends with is not repeated: ``.../v1`` and ``/v1/x``.
        keys: further ones of ``HttpProvider``.

    Raises:
        ConfigError: a value that cannot be used.
        TemplateError: a template in a header that cannot be compiled.
    """

    def __init__(self, *, base_url: str | None = None, **keys: Any) -> None:
        super().__init__(LINES, base_url=base_url, **keys)
        self._base = parse_base_url(base_url or "")
        in_headers = union(self.trees)
        self.columns = None if in_headers is None else in_headers | _SENT

    def build(self, data: Mapping[str, Any], call: CallContext) -> httpx.Request:
        """The request of one line.

        Raises:
            TemplateError: a header cannot be rendered for this line.
        """
        headers = self._headers.build(data, {"key": call.key})
        if "content-type" not in self._headers.names:
            headers.append((b"content-type", b"application/json"))
        url = joined(self._base, data["url"])
        return make_request("POST", url, headers, json_values.dumps(data["body"]))

    def read(self, reply: Reply) -> Outcome:
        """What a reply gives: of a 2xx, all of it."""
        outcome = super().read(reply)
        if not isinstance(outcome, Success):
            return outcome
        whole = {"status_code": reply.status, "request_id": outcome.request_id, "body": outcome.value}
        return replace(outcome, value=whole)


def joined(base: httpx.URL, url: str) -> httpx.URL:
    """A line's URL below the base URL, whose last parts are not repeated."""
    path, _, query = url.partition("?")
    before, after = _parts(base.path), _parts(path)
    shared = next(n for n in range(min(len(before), len(after)), -1, -1) if before[len(before) - n :] == after[:n])
    whole = "/" + "/".join((*before, *after[shared:]))
    queries = b"&".join(filter(None, (base.query, query.encode())))
    return base.copy_with(raw_path=httpx.URL(path=whole).raw_path + (b"?" + queries if queries else b""))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
