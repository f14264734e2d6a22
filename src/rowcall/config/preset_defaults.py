"""Where each preset's API is, and what its calls cannot do without; what it means stands in providers/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MESSAGES = 'messages = [{ role = "user", content = "{{ row.text }}" }]'
_CHAT = f'[request.body] with model = "..." and {_MESSAGES}'


@dataclass(frozen=True, slots=True)
class PresetDefaults:
    """Where an API is.

    Attributes:
        base_url: what paths are joined to; None where only the config knows.
        path: what is asked unless the config says otherwise; ``{model}`` stands for the body's ``model``.
        sample: a body, as a message shows it; empty where calls need none.
        needs: keys without which the API refuses every body at ``path``.
        key: the variable that holds the API's key by custom; empty where it takes none.
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
"""By the name of the preset."""
