"""What the mock API can be asked, and its answers: OpenAI's chat completions and embeddings, and a plain REST look-up.

The shapes of requests, answers and errors are those of OpenAI's API reference (``/v1/chat/completions``,
``/v1/embeddings``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import orjson
from aiohttp import web

from rowcall.mock.embedding import embedding
from rowcall.mock.sentiment import entry, sentiment

_WORDS = "/v1/words/"
_CHAT = "/v1/chat/completions"
_EMBEDDINGS = "/v1/embeddings"
_SENTIMENT = "/v1/sentiment"
_CHARACTERS_PER_TOKEN = 4

Asked = dict[str, Any]


class Question(Protocol):
    """One request, understood: ``text`` is what it asks about."""

    @property
    def text(self) -> str:
        """The record's words: the last user message, the word, the sentence; empty where there is none."""

    def answer(self, id_: str) -> web.Response:
        """The true answer; ``id_`` names the request."""


def read(method: str, path: str, query: Mapping[str, str], body: bytes, *, any_path: bool = False) -> Question:
    """Understand a request; what is wrong with it becomes a question whose answer is that error.

    With ``any_path`` a path that is not known is no error, and its answer an empty object.
    """
    if path == _CHAT:
        return _read_json(body, _fault_of_chat, _chat) if method == "POST" else _wrong_method(method, path)
    if path == _EMBEDDINGS:
        return _read_json(body, _fault_of_texts, _texts) if method == "POST" else _wrong_method(method, path)
    if path == _SENTIMENT:
        return _read_sentence(query) if method == "GET" else _wrong_method(method, path)
    if path.startswith(_WORDS) and len(path) > len(_WORDS):
        return _Word(path[len(_WORDS) :]) if method == "GET" else _wrong_method(method, path)
    if any_path:
        return _Anything()
    return _Wrong(404, f"Unknown request URL: {method} {path}.", code="unknown_url")


def error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """An error as OpenAI words it; its type follows from the status."""
    what = {"message": message, "type": _error_type(status), "param": param, "code": code}
    return json_response(status, {"error": what}, headers)


def json_response(status: int, value: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    """Any JSON value as a response."""
    described = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(status=status, body=orjson.dumps(value), headers=described)


@dataclass(frozen=True, slots=True)
class _Chat:
    text: str
    model: str
    prompt_characters: int
    max_tokens: int | None

    def answer(self, id_: str) -> web.Response:
        content = orjson.dumps(asdict(sentiment(self.text))).decode()
        content, finish_reason = self._cut(content)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": content, "refusal": None},
            "finish_reason": finish_reason,
        }
        return json_response(
            200,
            {
                "id": f"chatcmpl-{id_}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": self.model,
                "choices": [choice],
                "usage": self._usage(content),
            },
        )

    def _cut(self, content: str) -> tuple[str, str]:
        if self.max_tokens is None or _tokens(len(content)) <= self.max_tokens:
            return content, "stop"
        return content[: self.max_tokens * _CHARACTERS_PER_TOKEN], "length"

    def _usage(self, content: str) -> dict[str, Any]:
        prompt, completion = _tokens(self.prompt_characters), _tokens(len(content))
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }


@dataclass(frozen=True, slots=True)
class _Texts:
    texts: tuple[str, ...]
    model: str

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def answer(self, id_: str) -> web.Response:
        data = [
            {"object": "embedding", "index": index, "embedding": embedding(text)}
            for index, text in enumerate(self.texts)
        ]
        tokens = sum(_tokens(len(text)) for text in self.texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return json_response(200, {"object": "list", "data": data, "model": self.model, "usage": usage})


@dataclass(frozen=True, slots=True)
class _Word:
    text: str

    def answer(self, id_: str) -> web.Response:
        found = entry(self.text)
        if found is None:
            return error(404, f"The word {self.text!r} is not in the lexicon.", code="unknown_word")
        return json_response(200, found)


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str

    def answer(self, id_: str) -> web.Response:
        return json_response(200, {"text": self.text, **asdict(sentiment(self.text))})


@dataclass(frozen=True, slots=True)
class _Wrong:
    status: int
    message: str
    code: str | None = None
    param: str | None = None
    text: str = ""

    def answer(self, id_: str) -> web.Response:
        return error(self.status, self.message, code=self.code, param=self.param)


@dataclass(frozen=True, slots=True)
class _Anything:
    text: str = ""

    def answer(self, id_: str) -> web.Response:
        return json_response(200, {})


def _read_sentence(query: Mapping[str, str]) -> Question:
    text = query.get("text")
    return _Wrong(400, "Missing required parameter: 'text'.", param="text") if text is None else _Sentence(text)


def _read_json(
    body: bytes, fault_of: Callable[[Asked], Question | None], make: Callable[[Asked], Question]
) -> Question:
    try:
        asked = orjson.loads(body)
    except ValueError:
        return _Wrong(400, "We could not parse the JSON body of your request.", code="invalid_json")
    if not isinstance(asked, dict):
        return _Wrong(400, "The body of your request must be a JSON object.", code="invalid_json")
    return fault_of(asked) or make(asked)


def _chat(asked: Asked) -> Question:
    texts = [(message["role"], _text(message.get("content"))) for message in asked["messages"]]
    return _Chat(
        text=next((text for role, text in reversed(texts) if role == "user"), ""),
        model=asked["model"],
        prompt_characters=sum(len(text) for _, text in texts),
        max_tokens=_limit(asked),
    )


def _fault_of_chat(asked: Asked) -> Question | None:
    messages, limit = asked.get("messages"), _limit(asked)
    if not isinstance(asked.get("model"), str) or not asked["model"]:
        return _invalid("model", "a model's name")
    if not isinstance(messages, list) or not messages:
        return _invalid("messages", "a list with at least one message")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        return _invalid("max_tokens", "a whole number of at least 1")
    return next((fault for at, message in enumerate(messages) if (fault := _message_fault(at, message))), None)


def _texts(asked: Asked) -> Question:
    texts = asked["input"]
    return _Texts((texts,) if isinstance(texts, str) else tuple(texts), asked["model"])


def _fault_of_texts(asked: Asked) -> Question | None:
    texts = asked.get("input")
    if not isinstance(asked.get("model"), str) or not asked["model"]:
        return _invalid("model", "a model's name")
    if isinstance(texts, str) and texts:
        return None
    if isinstance(texts, list) and texts and all(isinstance(text, str) and text for text in texts):
        return None
    return _invalid("input", "a text, or a list of texts, none of them empty")


def _message_fault(at: int, message: Any) -> Question | None:
    if not isinstance(message, dict):
        return _invalid(f"messages[{at}]", "an object")
    if not isinstance(message.get("role"), str):
        return _invalid(f"messages[{at}].role", "a string")
    if not isinstance(message.get("content"), str | list | None):
        return _invalid(f"messages[{at}].content", "a string or a list of parts")
    return None


def _invalid(param: str, wanted: str) -> Question:
    return _Wrong(400, f"Invalid value for '{param}': expected {wanted}.", code="invalid_value", param=param)


def _wrong_method(method: str, path: str) -> Question:
    return _Wrong(405, f"Not allowed to {method} on {path}.", code="method_not_supported")


def _limit(asked: Asked) -> Any:
    """The most tokens of an answer; ``max_tokens`` is the older name."""
    return asked.get("max_completion_tokens", asked.get("max_tokens"))


def _text(content: Any) -> str:
    """The words of a message, which come as a string or in parts."""
    if not isinstance(content, list):
        return content or ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in parts if isinstance(text, str))


def _tokens(characters: int) -> int:
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)


def _error_type(status: int) -> str:
    if status == 429:
        return "requests"
    return "server_error" if status >= 500 else "invalid_request_error"
