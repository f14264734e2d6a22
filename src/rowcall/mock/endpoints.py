"""What the mock API can be asked: OpenAI's calls, Anthropic's messages, Gemini's generateContent, a REST look-up.

The shapes of requests and errors are those of the APIs' references; errors are worded as OpenAI does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import orjson
from aiohttp import web

from rowcall.mock.chat_answers import (
    Prompt,
    Shape,
    as_candidates,
    as_chat,
    as_message,
    as_response,
    last_of_user,
    tokens,
    words,
)
from rowcall.mock.embedding import embedding
from rowcall.mock.sentiment import entry, sentiment

_WORDS = "/v1/words/"
_SENTIMENT = "/v1/sentiment"
_GENERATE = re.compile(r"/v1(?:beta)?/models/([^/:]+):generateContent")

Asked = dict[str, Any]


class Question(Protocol):
    """One request, understood: ``text`` is what it asks about."""

    @property
    def text(self) -> str:
        """The record's words: the last user message, the word, the sentence; empty where there is none."""

    def answer(self, id_: str) -> web.Response:
        """The true answer; ``id_`` names the request."""


_Reader = tuple[Callable[[Asked], Question | None], Callable[[Asked], Question]]
"""What finds the fault of a body, and what takes it where it has none."""


def read(method: str, path: str, query: Mapping[str, str], body: bytes, *, any_path: bool = False) -> Question:
    """Understand a request; what is wrong with it becomes a question whose answer is that error.

    With ``any_path`` a path that is not known is no error, and its answer an empty object.
    """
    if asked := _posts(path):
        return _read_json(body, *asked) if method == "POST" else _wrong_method(method, path)
    if path == _SENTIMENT:
        return _read_sentence(query) if method == "GET" else _wrong_method(method, path)
    if path.startswith(_WORDS) and len(path) > len(_WORDS):
        return _Word(path[len(_WORDS) :]) if method == "GET" else _wrong_method(method, path)
    if any_path:
        return _Anything()
    return _Wrong(404, f"Unknown request URL: {method} {path}.", code="unknown_url")


def _posts(path: str) -> _Reader | None:
    """What reads the JSON that is sent to a path."""
    model = _GENERATE.fullmatch(path)
    return (_fault_of_contents, _contents(model[1])) if model else _POSTS.get(path)


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
class _Prompted:
    """A prompt, and the shape in which its answer goes back."""

    prompt: Prompt
    shape: Shape

    @property
    def text(self) -> str:
        return self.prompt.text

    def answer(self, id_: str) -> web.Response:
        return json_response(200, self.shape(self.prompt.said(id_)))


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
        read = sum(map(tokens, self.texts))
        usage = {"prompt_tokens": read, "total_tokens": read}
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


def _prompted(said: list[tuple[str, str]], model: str, limit: Any, shape: Shape) -> Question:
    characters = sum(len(text) for _, text in said)
    return _Prompted(Prompt(last_of_user(said), model, characters, limit), shape)


def _said(messages: Any, system: Any = None) -> list[tuple[str, str]]:
    """Who said what; a text alone is the user's."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    first = [("system", words(system))] if system else []
    return first + [(message.get("role", "user"), words(message.get("content"))) for message in messages]


def _chat(asked: Asked) -> Question:
    return _prompted(_said(asked["messages"]), asked["model"], _limit(asked), as_chat)


def _response(asked: Asked) -> Question:
    said = _said(asked["input"], asked.get("instructions"))
    return _prompted(said, asked["model"], asked.get("max_output_tokens"), as_response)


def _messages(asked: Asked) -> Question:
    return _prompted(_said(asked["messages"], asked.get("system")), asked["model"], asked["max_tokens"], as_message)


def _contents(model: str) -> Callable[[Asked], Question]:
    def contents(asked: Asked) -> Question:
        said = [(content.get("role", "user"), words(content["parts"])) for content in asked["contents"]]
        limit = asked.get("generationConfig", {}).get("maxOutputTokens")
        return _prompted(said, model, limit, as_candidates)

    return contents


def _fault_of_response(asked: Asked) -> Question | None:
    if not isinstance(asked.get("model"), str):
        return _invalid("model", "a model's name")
    given = asked.get("input")
    if isinstance(given, str) or (isinstance(given, list) and all(isinstance(item, dict) for item in given)):
        return None
    return _invalid("input", "a text, or a list of items")


def _fault_of_messages(asked: Asked) -> Question | None:
    if not isinstance(asked.get("max_tokens"), int):
        return _invalid("max_tokens", "a whole number of at least 1")
    return _fault_of_chat(asked)


def _fault_of_contents(asked: Asked) -> Question | None:
    contents = asked.get("contents")
    fit = isinstance(contents, list) and all(isinstance(one, dict) and "parts" in one for one in contents)
    return None if fit and "model" not in asked else _invalid("contents", "a list with parts; the model is in the path")


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


def _error_type(status: int) -> str:
    if status == 429:
        return "requests"
    return "server_error" if status >= 500 else "invalid_request_error"


_POSTS: Mapping[str, _Reader] = {
    "/v1/chat/completions": (_fault_of_chat, _chat),
    "/v1/responses": (_fault_of_response, _response),
    "/v1/embeddings": (_fault_of_texts, _texts),
    "/v1/messages": (_fault_of_messages, _messages),
}
