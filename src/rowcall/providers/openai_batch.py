"""The lines of an OpenAI batch file: each line names its own URL and body, and the whole reply is its answer.

Source: https://platform.openai.com/docs/guides/batch. A 2xx is the line's answer whatever its body says, as it is in
the output file of OpenAI's own batches.
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
from rowcall.providers.provider_settings import ApiSettings, RequestSettings, ResponseSettings
from rowcall.templates.check_columns import union

LINES = Preset(PRESET_DEFAULTS["openai-batch"], operations={"": Operation(dialect=ANY_OPERATION, needs_body=False)})
_SENT = frozenset({"url", "body"})


class BatchFileProvider(HttpProvider):
    """Sends the ``body`` of a line to its ``url`` unchanged. An answer is ``{status_code, request_id, body}``.

    The URLs of the lines are joined to the base URL. Path parts that both have are used once: ``.../v1`` and ``/v1/x``.

    Raises:
        ConfigError: a value cannot be used.
        TemplateError: a template in a header cannot be compiled.
    """

    def __init__(self, *, api: ApiSettings, request: RequestSettings, response: ResponseSettings) -> None:
        super().__init__(LINES, api=api, request=request, response=response)
        self._base = parse_base_url(api.base_url or "")
        in_headers = union(self.trees)
        self.columns = None if in_headers is None else in_headers | _SENT

    def build(self, data: Mapping[str, Any], call: CallContext) -> httpx.Request:
        """Build the request of one line.

        Raises:
            TemplateError: a header cannot be rendered for this line.
        """
        headers = self._headers.build(data, {"key": call.key})
        if "content-type" not in self._headers.names:
            headers.append((b"content-type", b"application/json"))
        url = join_line_url(self._base, data["url"])
        return make_request("POST", url, headers, json_values.dumps(data["body"]))

    def read(self, reply: Reply) -> Outcome:
        """Read a reply. The answer to a 2xx is the whole reply."""
        outcome = super().read(reply)
        if not isinstance(outcome, Success):
            return outcome
        whole = {"status_code": reply.status, "request_id": outcome.request_id, "body": outcome.value}
        return replace(outcome, value=whole)


def join_line_url(base: httpx.URL, url: str) -> httpx.URL:
    """Join a line's URL to the base URL, using the path parts once with which the one ends and the other begins."""
    path, _, query = url.partition("?")
    before, after = _path_parts(base.path), _path_parts(path)
    shared = next(n for n in range(min(len(before), len(after)), -1, -1) if before[len(before) - n :] == after[:n])
    whole = "/" + "/".join((*before, *after[shared:]))
    queries = b"&".join(filter(None, (base.query, query.encode())))
    return base.copy_with(raw_path=httpx.URL(path=whole).raw_path + (b"?" + queries if queries else b""))


def _path_parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
