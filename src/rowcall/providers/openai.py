"""OpenAI's chat completions and embeddings, which many servers speak: what their documents mean.

Facts from https://platform.openai.com/docs/api-reference (chat, embeddings), and the error shapes that OpenRouter
adds: an ``error`` beside or inside ``choices`` under HTTP 200 once a model has started.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rowcall.outcome import Failure, Reply, Usage
from rowcall.price import nano
from rowcall.providers.failures import answer_failure, embedded, failure, one_line
from rowcall.providers.http import HTTP, Dialect, Preset


def usage(document: Any) -> Usage:
    """Tokens of a chat completion; 0 for what it does not say. ``cost`` in dollars is what OpenRouter adds."""
    counts = _table(_table(document).get("usage"))
    return Usage(
        input=_count(counts, "prompt_tokens"),
        output=_count(counts, "completion_tokens"),
        cached=_count(_table(counts.get("prompt_tokens_details")), "cached_tokens"),
        reasoning=_count(_table(counts.get("completion_tokens_details")), "reasoning_tokens"),
        cost=_cost(counts.get("cost")),
    )


def fault(document: Any, reply: Reply) -> Failure | None:
    """The failure that a 200 reports: an error object, or an end that is not the model's own."""
    if error := _table(document).get("error"):
        return _reported(error, reply)
    choices = _table(document).get("choices")
    return _ended_badly(_table(choices[0]), reply) if isinstance(choices, list) and choices else None


def request_id(document: Any) -> str | None:
    """The completion's own id."""
    number = _table(document).get("id")
    return number[:200] if isinstance(number, str) else None


def _ended_badly(choice: dict[str, Any], reply: Reply) -> Failure | None:
    message, end = _table(choice.get("message")), choice.get("finish_reason")
    if end == "length":
        return answer_failure(reply, "truncated", "the answer was cut at its limit of tokens", retry=False)
    if end == "content_filter":
        return answer_failure(reply, "filtered", "the content filter stopped the answer", retry=False)
    if refusal := message.get("refusal"):
        return answer_failure(reply, "filtered", f"the model refused: {refusal}", retry=False)
    if end == "error" or choice.get("error"):
        return _reported(choice.get("error"), reply)
    return None


def _reported(error: Any, reply: Reply) -> Failure:
    found = embedded(error, reply)
    if found:
        return failure(reply, found)
    words = error.get("message") if isinstance(error, dict) else error
    return answer_failure(reply, "error_reply", f"an error inside HTTP 200: {one_line(str(words or 'no message'))}")


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(counts: dict[str, Any], name: str) -> int:
    count = counts.get(name)
    return count if isinstance(count, int) and 0 < count < 2**53 else 0


def _cost(dollars: Any) -> int | None:
    known = isinstance(dollars, int | float) and not isinstance(dollars, bool) and 0 <= dollars < _MOST_DOLLARS
    return nano(dollars) if known else None


_MOST_DOLLARS = 10**6

CHAT = Dialect(usage=usage, fault=fault, request_id=request_id, text=True)
EMBEDDINGS = Dialect(usage=usage, fault=fault, request_id=lambda document: None)

OPENAI = Preset(
    base_url="https://api.openai.com/v1",
    method="POST",
    path="/chat/completions",
    extract="choices[0].message.content",
    dialect=CHAT,
    needs_body=True,
)


def openai(path: str | None) -> Preset:
    """OpenAI's preset for what is asked at ``path``: embeddings at ``.../embeddings``, else chat."""
    if path is None or not path.rstrip("/").endswith("/embeddings"):
        return OPENAI
    return replace(OPENAI, path=path, extract="data[0].embedding", dialect=EMBEDDINGS)


def mock(path: str | None) -> Preset:
    """The local fake API: OpenAI's shapes at OpenAI's paths, plain HTTP elsewhere; it says itself where it listens."""
    speaks_openai = path is None or path.endswith(("/chat/completions", "/embeddings"))
    return replace(openai(path), base_url=None) if speaks_openai else HTTP
