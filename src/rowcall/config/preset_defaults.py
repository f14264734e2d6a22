"""The URL of each preset's API, and what its calls need. How its replies are read: see ``providers/``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MESSAGES = 'messages = [{ role = "user", content = "{{ row.text }}" }]'
_CHAT = f'[request.body] with model = "..." and {_MESSAGES}'


@dataclass(frozen=True, slots=True)
class PresetDefaults:
    """What the config may leave out for a preset, and what it must contain.

    Attributes:
        base_url: the URL that paths are joined to; None if the config must name it.
        path: the default path; ``{model}`` is replaced by the body's ``model``.
        sample: an example of a body, for messages; empty if calls need none.
        needs: keys that every body at ``path`` must have.
        key: the usual variable for the API key; empty if the API needs no key.
    """

    base_url: str | None = None
    path: str = ""
    sample: str = ""
    needs: tuple[str, ...] = ()
    key: str = ""


PRESET_DEFAULTS: Mapping[str, PresetDefaults] = {
    "openai": PresetDefaults("https://api.openai.com/v1", "/chat/completions", _CHAT, key="OPENAI_API_KEY"),
    "anthropic": PresetDefaults(
        "https://api.anthropic.com/v1",
        "/messages",
        f'[request.body] with model = "...", max_tokens = 1000 and {_MESSAGES}',
        needs=("model", "max_tokens", "messages"),
        key="ANTHROPIC_API_KEY",
    ),
    "gemini": PresetDefaults(
        "https://generativelanguage.googleapis.com/v1beta",
        "/models/{model}:generateContent",
        '[request.body] with model = "..." and contents = [{ parts = [{ text = "{{ row.text }}" }] }]',
        needs=("model", "contents"),
        key="GEMINI_API_KEY",
    ),
    "openrouter": PresetDefaults("https://openrouter.ai/api/v1", "/chat/completions", _CHAT, key="OPENROUTER_API_KEY"),
    "ollama": PresetDefaults("http://localhost:11434/v1", "/chat/completions", _CHAT),
    "vllm": PresetDefaults("http://localhost:8000/v1", "/chat/completions", _CHAT),
    "http": PresetDefaults(),
    "mock": PresetDefaults(None, "/chat/completions", _CHAT),
    "openai-batch": PresetDefaults(key="OPENAI_API_KEY"),
}
