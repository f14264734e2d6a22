"""How the APIs are spoken to: requests built, replies read, nothing sent."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from rowcall.model.errors import ConfigError, Problem
from rowcall.providers.anthropic import ANTHROPIC
from rowcall.providers.base import CallContext, Provider, Request
from rowcall.providers.dialect import Preset
from rowcall.providers.error_replies import REASONS, classify
from rowcall.providers.gemini import GEMINI
from rowcall.providers.http import HTTP, HttpProvider
from rowcall.providers.openai import MOCK, OLLAMA, OPENAI, OPENROUTER, VLLM
from rowcall.providers.openai_batch import LINES, BatchFileProvider

__all__ = ["PRESETS", "REASONS", "CallContext", "HttpProvider", "Provider", "Request", "classify", "make_provider"]

BATCH_FILE = "openai-batch"
"""The preset whose records name their own URL and body."""

PRESETS: Mapping[str, Preset] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "openrouter": OPENROUTER,
    "ollama": OLLAMA,
    "vllm": VLLM,
    BATCH_FILE: LINES,
    "http": HTTP,
    "mock": MOCK,
}
"""What each preset fills in."""


def make_provider(preset: str, **keys: Any) -> HttpProvider:
    """The provider of a preset; ``keys`` are those of ``HttpProvider``.

    Raises:
        ConfigError: no such preset, or a key that cannot be used.
        TemplateError: a template that cannot be compiled.
    """
    if preset == BATCH_FILE:
        return BatchFileProvider(**keys)
    if preset not in PRESETS:
        close = difflib.get_close_matches(preset, PRESETS, n=1)
        remedy = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(PRESETS)}."
        raise ConfigError(Problem("api.preset", f"there is no preset {preset!r}", remedy))
    return HttpProvider(PRESETS[preset], **keys)
