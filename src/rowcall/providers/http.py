"""Any API over HTTP: what a request is made of and how its reply is read; every preset is a variation of this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from rowcall.config import Secret
from rowcall.config.preset_defaults import PRESET_DEFAULTS
from rowcall.model import json_values
from rowcall.model.errors import ConfigError, Problem
from rowcall.model.outcome import Failure, Outcome, Reply, Success, Usage
from rowcall.providers.attachments import LARGEST, Attachments
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
)
from rowcall.providers.dialect import PLAIN_OPERATION, GroupFormat, Preset
from rowcall.providers.error_replies import answer_failure, classify, html_failure, is_html, request_id, start_of_body
from rowcall.providers.read_reply import Unacceptable, make_reading
from rowcall.providers.split_reply import split_document
from rowcall.sources.keys import FilePrints
from rowcall.templates.compile import TemplateTree, union

_WITH_TEXT = frozenset({"truncated", "filtered", "not_json", "schema"})
_KEPT_OF_ANSWER = 20_000

_Answer = Callable[[Reply, Any], Outcome]
"""What the document of a reply gives."""

HTTP = Preset(defaults=PRESET_DEFAULTS["http"], operations={"": PLAIN_OPERATION})


class HttpProvider:
    """Builds requests and reads replies by the keys of ``[api]``, ``[request]`` and ``[response]``.

    A reply of 2xx is read like this. With ``extract`` it must be JSON, and null there is the failure ``empty``.
    Without, JSON is taken whole, other text as text, an empty body as null; a web page is always a failure. A status
    in ``answer`` (``404`` or ``4xx``) is an answer without a value: null.

    Args:
        preset: what fills in the gaps.
        base_url: where paths are joined to.
        api_key: goes out in the preset's header, unless one of that name is given.
        headers: those of ``[api]``.
        method: left out: POST where there is a body, else GET.
        path: a template; values in it are percent-encoded, and ``{model}`` is the ``model`` of the body, which is
            taken out of it. Empty: the preset's.
        params: templates of the query.
        request_headers: those of ``[request]``; they win over ``headers``.
        body: templates; text goes out as text, everything else as JSON.
        extract: JMESPath into the reply.
        parse: ``json``: the text found is JSON. ``text``: it is not; without ``extract`` the body is the answer as
            it stands, a web page too.
        schema: a JSON Schema for the answer; with it ``parse`` is ``json`` unless the config says otherwise.
        assertions: JMESPath that must hold for the document of a reply.
        longer: tokens that the answer may have in a call that asks for a longer one.
        answer: statuses that are answers.
        folder: where the paths of attached files begin; None: here.
        max_attachment: bytes of one attached file.

    Raises:
        ConfigError: a value that cannot be used.
        TemplateError: a template that cannot be compiled.
    """

    def __init__(
        self,
        preset: Preset = HTTP,
        *,
        base_url: str | None = None,
        api_key: Secret | str | None = None,
        headers: Mapping[str, Any] | None = None,
        method: str | None = None,
        path: str | None = None,
        params: Mapping[str, Any] | None = None,
        request_headers: Mapping[str, Any] | None = None,
        body: Any = None,
        extract: str | None = None,
        parse: str | None = None,
        schema: dict[str, Any] | bool | None = None,
        assertions: Iterable[str] = (),
        longer: int | None = None,
        answer: Iterable[str | int] = (),
        folder: Path | None = None,
        max_attachment: int = LARGEST,
    ) -> None:
        base = parse_base_url(_required(base_url or preset.defaults.base_url, "api.base_url"))
        form = preset.operation_at(path)
        if form.needs_body:
            _required(body, "request.body")
        path, body = with_model(path or preset.defaults.path, body)
        self._method = (method or ("GET" if body is None else "POST")).upper()
        self._url = URLPart(base, path, params or {})
        tables = {"preset": preset.headers, "api.headers": headers or {}, "request.headers": request_headers or {}}
        self._headers = HeadersPart(tables, api_key, preset.key_header)
        limits = form.dialect.limits
        attachments = Attachments(folder or Path(), max_attachment)
        typed = "content-type" in self._headers.names
        self._body = BodyPart(body, typed=typed, limits=limits, attachments=attachments)
        self.files: FilePrints | None = attachments.prints if attachments.found else None
        self._longer = None if longer is None else _fit_limit(longer, limits)
        self._reading = make_reading(extract or form.extract, parse, schema, assertions)
        self._dialect = form.dialect
        self.group = form.group
        self._answers = statuses(answer)
        self._secrets = secrets_in(api_key, headers, params, request_headers, body)
        self.target = target_of(base)
        self.trees_around_body: tuple[TemplateTree, ...] = (*self._url.trees, *self._headers.trees)
        self.trees: tuple[TemplateTree, ...] = (*self.trees_around_body, *self._body.trees)
        self.columns = union(self.trees)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._method} {self.target}>"

    def build(self, data: Mapping[str, Any], call: CallContext) -> httpx.Request:
        """The request for one record.

        Raises:
            TemplateError: a template cannot be rendered for this record, or a file not attached.
        """
        headers = self._headers.build(data, {"key": call.key})
        typed, content = self._body.build(data, self._longer if call.longer else None, bare=call.bare)
        return make_request(self._method, self._url.build(data), headers + typed, content)

    def read(self, reply: Reply) -> Outcome:
        """What a reply gives. Never raises, whatever the body holds; a failure shows no secret of the request."""
        return self._read(reply, self._answer)

    def read_group(self, reply: Reply, group: GroupFormat, count: int) -> Outcome:
        """What the reply to a request for several records gives, as ``read``; see ``GroupProvider``."""
        outcome = self._read(reply, partial(self._answers_of, group, count))
        if isinstance(outcome, Success) and not isinstance(outcome.value, tuple):
            return replace(outcome, value=(outcome,) * count)
        return outcome

    def _read(self, reply: Reply, answer: _Answer) -> Outcome:
        outcome = self._outcome(reply, answer)
        if _has_failed(outcome) and any(secret in reply.body for secret in self._secrets):
            return self._outcome(replace(reply, body=self._blotted(reply.body)), answer)
        return outcome

    def _outcome(self, reply: Reply, answer: _Answer) -> Outcome:
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
        if self._reading.verbatim:
            return _text(reply)
        try:
            return json_values.loads(reply.body)
        except ValueError as error:
            if is_html(reply):
                raise Unacceptable("html_reply", "") from error
            if self._reading.extract or (reply.body and _says_json(reply)):
                raise Unacceptable("not_json", f"the reply is no JSON: {error}") from error
            return _text(reply) or None

    def _answer(self, reply: Reply, document: Any) -> Outcome:
        usage = self._dialect.usage(document)
        fault = self._dialect.fault(document, reply)
        if fault:
            return self._rejected(fault, document, usage)
        try:
            answer = self._reading.answer(document)
        except Unacceptable as error:
            return self._rejected(_unacceptable(reply, error), document, usage)
        if self._is_empty(answer):
            return replace(answer_failure(reply, "empty", self._nothing_found(document)), usage=usage)
        number = request_id(reply) or self._dialect.request_id(document)
        return Success(answer, reply.status, number, reply.latency, usage)

    def _answers_of(self, group: GroupFormat, count: int, reply: Reply, document: Any) -> Outcome:
        """The outcome of each record, or what the whole reply failed by."""
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
        """A failure with its tokens and, where there was an answer, the text of that in the place of the reply."""
        text = self._reading.text(document) if failure.reason in _WITH_TEXT else ""
        return replace(
            failure, usage=usage, body=start_of_body(text.encode(), _KEPT_OF_ANSWER) if text else failure.body
        )

    def _is_empty(self, answer: Any) -> bool:
        if answer is None:
            return self._reading.extract is not None
        return self._dialect.text and isinstance(answer, str) and not answer.strip()

    def _nothing_found(self, document: Any) -> str:
        there = f"; its keys: {', '.join(list(document)[:20])}" if isinstance(document, dict) else ""
        return f"nothing at {self._reading.path!r} in the reply{there}"

    def _blotted(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret, b"***")
        return body


def _has_failed(outcome: Outcome) -> bool:
    """Whether it is a failure, or that of a group with one in it."""
    if isinstance(outcome, Success):
        return isinstance(outcome.value, tuple) and any(isinstance(each, Failure) for each in outcome.value)
    return True


def _required(value: Any, where: str) -> Any:
    if value is None:
        raise ConfigError(Problem(where, "is missing", "This preset needs it."))
    return value


def _fit_limit(longer: int, limits: tuple[str, ...]) -> int:
    if not limits:
        remedy = "Take it out; this kind of call has no limit that rowcall knows."
        raise ConfigError(Problem("response.on_truncated", "means nothing for these calls", remedy))
    return longer


def statuses(answer: Iterable[str | int]) -> frozenset[int]:
    """The statuses of ``[response] answer``: ``404``, or all of ``4xx``.

    Raises:
        ConfigError: neither.
    """
    found: set[int] = set()
    for item in map(str, answer):
        first, rest = item[:1], item[1:].lower()
        if first not in tuple("12345") or not (rest == "xx" or (len(rest) == 2 and rest.isdecimal())):
            raise ConfigError(Problem("response.answer", f"{item!r} is no HTTP status", 'Write "404" or "4xx".'))
        found |= set(range(int(first) * 100, int(first) * 100 + 100)) if rest == "xx" else {int(item)}
    return frozenset(found)


def _says_json(reply: Reply) -> bool:
    return "json" in reply.headers.get("content-type", "").lower().partition(";")[0]


def _text(reply: Reply) -> str:
    """The body as text, by the charset it names, else UTF-8."""
    _, _, charset = reply.headers.get("content-type", "").partition("charset=")
    try:
        return reply.body.decode(charset.partition(";")[0].strip(' "') or "utf-8", "replace")
    except (LookupError, UnicodeError):
        return reply.body.decode("utf-8", "replace")


def _unacceptable(reply: Reply, error: Unacceptable) -> Failure:
    return answer_failure(reply, error.reason, error.message)
