"""A model that judges the text it is asked about, in the words of four APIs.

The shapes of answers are those of OpenAI's chat completions and responses, Anthropic's messages and Gemini's
generateContent, as their references have them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from rowcall.mock.sentiment import sentiment

CHARACTERS_PER_TOKEN = 4

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model said: ``cut`` where its limit of tokens ended it."""

    id: str
    model: str
    text: str
    cut: bool
    read: int
    written: int


Shape = Callable[[ChatReply], Document]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is asked.

    Attributes:
        text: what is judged.
        model: the name it goes by.
        characters: of all that was sent to be read.
        most: tokens that the answer may have.
    """

    text: str
    model: str
    characters: int
    most: int | None

    def said(self, id_: str) -> ChatReply:
        """The true answer, as JSON in a text."""
        whole = orjson.dumps(asdict(sentiment(self.text))).decode()
        cut = self.most is not None and tokens(whole) > self.most
        text = whole[: (self.most or 0) * CHARACTERS_PER_TOKEN] if cut else whole
        return ChatReply(id_, self.model, text, cut, math.ceil(self.characters / CHARACTERS_PER_TOKEN), tokens(text))


def tokens(text: str) -> int:
    """Roughly how many tokens a text has."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def words(content: Any) -> str:
    """The words of a message, which come as a string or in parts."""
    if not isinstance(content, list):
        return content or ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in parts if isinstance(text, str))


def as_chat(said: ChatReply) -> Document:
    """A chat completion."""
    message = {"role": "assistant", "content": said.text, "refusal": None}
    return {
        "id": f"chatcmpl-{said.id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": said.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "length" if said.cut else "stop"}],
        "usage": {
            "prompt_tokens": said.read,
            "completion_tokens": said.written,
            "total_tokens": said.read + said.written,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def as_response(said: ChatReply) -> Document:
    """A response."""
    text = {"type": "output_text", "text": said.text, "annotations": []}
    return {
        "id": f"resp_{said.id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if said.cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if said.cut else None,
        "model": said.model,
        "output": [{"type": "message", "id": f"msg_{said.id}", "role": "assistant", "content": [text]}],
        "usage": {
            "input_tokens": said.read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said.written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": said.read + said.written,
        },
    }


def as_message(said: ChatReply) -> Document:
    """A message; half of what was read came from a cache, which ``input_tokens`` leaves out."""
    cached = said.read // 2
    return {
        "id": f"msg_{said.id}",
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [{"type": "text", "text": said.text}],
        "stop_reason": "max_tokens" if said.cut else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": said.read - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": said.written,
        },
    }


def as_candidates(said: ChatReply) -> Document:
    """A response of generateContent."""
    content = {"role": "model", "parts": [{"text": said.text}]}
    return {
        "candidates": [{"content": content, "finishReason": "MAX_TOKENS" if said.cut else "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": said.read,
            "candidatesTokenCount": said.written,
            "totalTokenCount": said.read + said.written,
        },
        "modelVersion": said.model,
        "responseId": said.id,
    }


def last_of_user(texts: Iterable[tuple[str, str]]) -> str:
    """What the user said last, of all that was said by whom."""
    return next((text for role, text in reversed(list(texts)) if role == "user"), "")
