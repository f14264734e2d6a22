"""Calls of any HTTP API: builds requests and reads replies. Every preset is a variation of this provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import httpx

from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.model import json_values
from rowcall.model.errors import ConfigError, Problem
from rowcall.model.outcome import Failure, Outcome, Reply, Success, Usage
from rowcall.providers.attachments import Attachments
from rowcall.providers.base import CallContext
from rowcall.providers.build_request import (
    BodyPart,
    HeadersPart,
    URLPart,
    make_request,
    parse_base_url,
    secrets_in,
    target_of,
    with_model,
    without_secrets,
)
from rowcall.providers.classify_error_reply import answer_failure, classify, html_failure
from rowcall.providers.dialect import PLAIN_OPERATION, GroupFormat, Preset
from rowcall.providers.group_requests import split_document
from rowcall.providers.parse_error_reply import is_html, request_id, start_of_body
from rowcall.providers.provider_settings import ApiSettings, RequestSettings, ResponseSettings
from rowcall.providers.read_reply import Unacceptable, make_reply_reader
from rowcall.sources.keys import FilePrints
from rowcall.templates.check_columns import union
from rowcall.templates.compile import TemplateTree

_WITH_TEXT = frozenset({"truncated", "filtered", "not_json", "schema"})
"""Reasons of failures whose rejected answer is worth showing to the user."""
_KEPT_OF_ANSWER = 20_000

HTTP = Preset(defaults=PRESET_DEFAULTS["http"], operations={"": PLAIN_OPERATION})


class HttpProvider:
    """Builds requests and reads replies by the keys of ``[api]``, ``[request]`` and ``[response]``.

    How a 2xx reply is read: with ``extract`` it must be JSON, and null at that place is the failure ``empty``. Without
    ``extract``, JSON is taken as it is, other text as text, an empty body as null. A web page is always a failure. A
    status that ``[response] answer`` lists is an answer with the value null.

    Raises:
        ConfigError: a value cannot be used.
        TemplateError: a template cannot be compiled.
    """

    def __init__(
        self, preset: Preset, *, api: ApiSettings, request: RequestSettings, response: ResponseSettings
    ) -> None:
        base = parse_base_url(_required(api.base_url or preset.defaults.base_url, "api.base_url"))
        operation = preset.operation_at(request.path)
        if operation.needs_body:
            _required(request.body, "request.body")
        path, body = with_model(request.path or preset.defaults.path, request.body)
        self._method = (request.method or ("GET" if body is None else "POST")).upper()
        self._url = URLPart(base, path, request.params)
        headers = {"preset": preset.headers, "api.headers": api.headers, "request.headers": request.headers}
        self._headers = HeadersPart(headers, api.api_key, preset.key_header)
        self._dialect = operation.dialect
        limits = self._dialect.limits
        if request.longer is not None and not limits:
            remedy = "Remove it: rowcall knows no token limit for this kind of call."
            raise ConfigError(Problem("response.on_truncated", "has no effect on these calls", remedy))
        self._longer = request.longer
        attachments = Attachments(request.folder, request.max_attachment, request.attachments, request.own_files)
        has_type = "content-type" in self._headers.names
        self._body = BodyPart(body, has_type=has_type, limits=limits, attachments=attachments)
        self._reader = make_reply_reader(
            response.extract or operation.extract, response.parse, response.schema, response.assertions
        )
        self._answers = statuses(response.answer)
        self._secrets = secrets_in(api.api_key, api.headers, request.params, request.headers, request.body)
        self.group = operation.group
        self.files: FilePrints | None = attachments.prints if attachments.found else None
        self.target = target_of(base)
        self.trees_around_body: tuple[TemplateTree, ...] = (*self._url.trees, *self._headers.trees)
        self.trees: tuple[TemplateTree, ...] = (*self.trees_around_body, *self._body.trees)
        self.columns = union(self.trees)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._method} {self.target}>"

    def build(self, data: Mapping[str, Any], call: CallContext) -> httpx.Request:
        """Build the request for one record.

        Raises:
            TemplateError: a template cannot be rendered for this record, or a file cannot be attached.
        """
        headers = self._headers.build(data, {"key": call.key})
        type_header, content = self._body.build(data, self._longer if call.longer else None, bare=call.bare)
        return make_request(self._method, self._url.build(data), headers + type_header, content)

    def read(self, reply: Reply) -> Outcome:
        """Read a reply. Never raises, whatever the body contains; a failure shows no secret of the request."""
        return self._read(reply, self._answer)

    def read_group(self, reply: Reply, group: GroupFormat, count: int) -> Outcome:
        """Read the reply to a request for several records; see ``GroupProvider``."""
        outcome = self._read(reply, partial(self._answers_of, group, count))
        if isinstance(outcome, Success) and not isinstance(outcome.value, tuple):
            return replace(outcome, value=(outcome,) * count)  # a status of [response] answer holds for every record
        return outcome

    def _read(self, reply: Reply, answer: Callable[[Reply, Any], Outcome]) -> Outcome:
        """Read a reply; if that gives a failure and the body repeats a secret of the request, read it again without."""
        outcome = self._outcome(reply, answer)
        if _has_failed(outcome) and any(secret in reply.body for secret in self._secrets):
            return self._outcome(replace(reply, body=without_secrets(reply.body, self._secrets)), answer)
        return outcome

    def _outcome(self, reply: Reply, answer: Callable[[Reply, Any], Outcome]) -> Outcome:
        if reply.status in self._answers:
            return Success(None, reply.status, request_id(reply), reply.latency)
        if not 200 <= reply.status < 300:
            return classify(reply)
        try:
            return answer(reply, self._document(reply))
        except Unacceptable as error:
            return html_failure(reply) if error.reason == "html_reply" else _unacceptable(reply, error)
        except RecursionError:
            return answer_failure(reply, "not_json", "the reply is nested too deeply")

    def _document(self, reply: Reply) -> Any:
        if self._reader.verbatim:
            return _text(reply)
        try:
            return json_values.loads(reply.body)
        except ValueError as error:
            if is_html(reply):
                raise Unacceptable("html_reply", "") from error
            says_json = "json" in reply.headers.get("content-type", "").lower().partition(";")[0]
            if self._reader.extract or (reply.body and says_json):
                raise Unacceptable("not_json", f"the reply is not valid JSON: {error}") from error
            return _text(reply) or None

    def _answer(self, reply: Reply, document: Any) -> Outcome:
        usage = self._dialect.usage(document)
        fault = self._dialect.fault(document, reply)
        if fault:
            return self._rejected(fault, document, usage)
        try:
            answer = self._reader.answer(document)
        except Unacceptable as error:
            return self._rejected(_unacceptable(reply, error), document, usage)
        if self._is_empty(answer):
            return replace(answer_failure(reply, "empty", self._nothing_found(document)), usage=usage)
        number = request_id(reply) or self._dialect.request_id(document)
        return Success(answer, reply.status, number, reply.latency, usage)

    def _answers_of(self, group: GroupFormat, count: int, reply: Reply, document: Any) -> Outcome:
        """Return the outcome of each record as one tuple, or the failure of the whole reply."""
        usage = self._dialect.usage(document)
        if fault := self._dialect.fault(document, reply):
            return self._rejected(fault, document, usage)
        try:
            parts = split_document(document, group, count)
        except Unacceptable as error:
            return self._rejected(_unacceptable(reply, error), document, usage)
        each = tuple(self._answer(reply, part) for part in parts)
        return Success(each, reply.status, request_id(reply), reply.latency, usage)

    def _rejected(self, failure: Failure, document: Any, usage: Usage) -> Failure:
        """Add the tokens and, if the reply had an answer, the answer's text instead of the reply's body."""
        text = self._reader.text(document) if failure.reason in _WITH_TEXT else ""
        body = start_of_body(text.encode(), _KEPT_OF_ANSWER) if text else failure.body
        return replace(failure, usage=usage, body=body)

    def _is_empty(self, answer: Any) -> bool:
        if answer is None:
            return self._reader.extract is not None
        return self._dialect.text and isinstance(answer, str) and not answer.strip()

    def _nothing_found(self, document: Any) -> str:
        keys = f"; its keys: {', '.join(list(document)[:20])}" if isinstance(document, dict) else ""
        return f"there is nothing at {self._reader.path!r} in the reply{keys}"


def _has_failed(outcome: Outcome) -> bool:
    """Return whether an outcome is a failure, or that of a group in which a record failed."""
    if isinstance(outcome, Success):
        return isinstance(outcome.value, tuple) and any(isinstance(each, Failure) for each in outcome.value)
    return True


def _required(value: Any, where: str) -> Any:
    if value is None:
        raise ConfigError(Problem(where, "is missing", "This preset needs it."))
    return value


def statuses(answer: Iterable[str | int]) -> frozenset[int]:
    """Return the statuses of ``[response] answer``: ``404`` is one of them, ``4xx`` a hundred.

    Raises:
        ConfigError: an item is neither.
    """
    found: set[int] = set()
    for item in map(str, answer):
        first, rest = item[:1], item[1:].lower()
        if first not in tuple("12345") or not (rest == "xx" or (len(rest) == 2 and rest.isdecimal())):
            raise ConfigError(Problem("response.answer", f"{item!r} is not an HTTP status", 'Write "404" or "4xx".'))
        found |= set(range(int(first) * 100, int(first) * 100 + 100)) if rest == "xx" else {int(item)}
    return frozenset(found)


def _text(reply: Reply) -> str:
    """Decode the body by the charset in its Content-Type, else as UTF-8."""
    _, _, charset = reply.headers.get("content-type", "").partition("charset=")
    try:
        return reply.body.decode(charset.partition(";")[0].strip(' "') or "utf-8", "replace")
    except (LookupError, UnicodeError):
        return reply.body.decode("utf-8", "replace")


def _unacceptable(reply: Reply, error: Unacceptable) -> Failure:
    return answer_failure(reply, error.reason, error.message)
