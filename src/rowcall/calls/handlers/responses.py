"""What a handler gets for a request: a response, or an exception that says who pays."""

from __future__ import annotations

import json
from typing import Any

import httpx

from rowcall.client import CallFailed
from rowcall.model.outcome import Failure, FailureClass, Reply, Usage
from rowcall.model.prices import Prices
from rowcall.providers.classify_error_reply import answer_failure, classify, html_failure
from rowcall.providers.dialect import Dialect
from rowcall.providers.parse_error_reply import is_html


class StatusFailed(CallFailed, httpx.HTTPStatusError):
    """A reply whose status is not an answer; ``response`` holds the reply."""

    def __init__(self, failure: Failure, request: httpx.Request, response: httpx.Response) -> None:
        super().__init__(failure.message, request=request, response=response)
        self._failure = failure

    @property
    def failure(self) -> Failure:
        """The failure that the exception stands for."""
        return self._failure


class NotJSON(CallFailed, ValueError):
    """A reply of 2xx that was taken for JSON and is none: a portal's web page, say."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self._failure = failure

    @property
    def failure(self) -> Failure:
        """The failure that the exception stands for."""
        return self._failure


class Offline(CallFailed, httpx.ConnectError):
    """The API cannot be reached, so the request was not sent."""

    @property
    def failure(self) -> Failure:
        """The failure that the exception stands for."""
        return Failure(FailureClass.NOT_SENT, "offline", str(self))


class Response(httpx.Response):
    """A reply read to its end; ``json`` knows what a body that is no JSON means."""

    reply: Reply

    def json(self, **kwargs: Any) -> Any:
        """Return the body parsed as JSON; keyword arguments are passed to ``json.loads``.

        Raises:
            NotJSON: it is none.
        """
        try:
            return json.loads(self.content, **kwargs)
        except ValueError as error:
            raise NotJSON(_no_json(self.reply, error)) from error


def read(request: httpx.Request, reply: Reply, answers: frozenset[int]) -> Response:
    """Return a reply as a response.

    Raises:
        StatusFailed: its status is neither 2xx nor one of ``answers``.
    """
    response = Response(reply.status, headers=reply.headers, content=reply.body, request=request)
    response.reply = reply
    if response.is_success or reply.status in answers:
        return response
    raise StatusFailed(classify(reply), request, response)


def usage_of(reply: Reply, dialect: Dialect, prices: Prices | None) -> Usage:
    """Return the tokens that a reply reports and what it cost; zero where it reports none."""
    found = dialect.usage(_document(reply.body)) if b'"usage' in reply.body else Usage()
    return found if prices is None else prices.priced(found, answered=200 <= reply.status < 300)


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _no_json(reply: Reply, error: ValueError) -> Failure:
    if is_html(reply):
        return html_failure(reply)
    return answer_failure(reply, "not_json", f"the reply is not valid JSON: {error}")
