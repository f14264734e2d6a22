"""Judges the sentiment of a text by the valence of its words, with negations and intensifiers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from rowcall.mock.lexicon import INTENSIFIERS, NEGATIONS, VALENCES

Label = Literal["positive", "neutral", "negative"]

_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")
_ENDINGS = ("ly", "ing", "ed", "er", "est", "es", "s")
_REACH = 3  # a negation reverses the next three words
_NEGATION_FACTOR = -0.6  # "not great" is less bad than "bad"
_BUT = {"but", "however", "although"}
_SPREAD = 20.0  # with a larger value, it takes more words to reach the ends of the scale
_NEUTRAL = 0.3  # scores from -0.3 to 0.3 are neutral


@dataclass(frozen=True, slots=True)
class Sentiment:
    """A score from -4.0 to 4.0 with two decimals, and its label: neutral from -0.3 to 0.3."""

    label: Label
    score: float


def sentiment(text: str) -> Sentiment:
    """Return the sentiment of an English text; 0.0 and neutral if no word is known."""
    words = _WORD.findall(text.lower().replace("\u2019", "'"))
    total = sum(_weights(words))
    score = round(4 * total / math.sqrt(total * total + _SPREAD), 2)
    return Sentiment(_label(score), score + 0.0)  # + 0.0: never -0.0


def entry(word: str) -> dict[str, Any] | None:
    """Return the lexicon's entry of a word or of its stem; None for an unknown word."""
    word = word.lower()
    if word in NEGATIONS:
        return {"word": word, "kind": "negation"}
    if word in INTENSIFIERS:
        return {"word": word, "kind": "intensifier", "factor": INTENSIFIERS[word]}
    stem = _stem(word)
    return None if stem is None else {"word": word, "kind": "valence", "entry": stem, "valence": VALENCES[stem]}


def _weights(words: Sequence[str]) -> list[float]:
    """Return the weight of each word: times 0.5 before the last "but", times 1.5 from there on."""
    weights = [_weight(words, at) for at in range(len(words))]
    turn = max((at for at, word in enumerate(words) if word in _BUT), default=None)
    if turn is None:
        return weights
    return [weight * (0.5 if at < turn else 1.5) for at, weight in enumerate(weights)]


def _weight(words: Sequence[str], at: int) -> float:
    stem = _stem(words[at])
    if stem is None:
        return 0.0
    negated = any(word in NEGATIONS for word in words[max(0, at - _REACH) : at])
    factor = INTENSIFIERS.get(words[at - 1], 1.0) if at else 1.0
    return VALENCES[stem] * factor * (_NEGATION_FACTOR if negated else 1.0)


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str | None:
    """Return the form of a word that is in the lexicon; None if there is none."""
    if word in VALENCES:
        return word
    return next((stem for stem in _stems(word) if stem in VALENCES), None)


def _stems(word: str) -> list[str]:
    bare = [word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending) and len(word) > len(ending) + 2]
    return [stem for form in bare for stem in (form, form + "e", _single(form), _with_y(form))]


def _with_y(form: str) -> str:
    """Correct the spelling of a stem such as ``happi`` (from ``happily``)."""
    return form[:-1] + "y" if form.endswith("i") else form


def _single(form: str) -> str:
    """Remove the doubled consonant of a stem such as ``stopp`` (from ``stopped``)."""
    return form[:-1] if len(form) > 3 and form[-1] == form[-2] else form


def _label(score: float) -> Label:
    if abs(score) <= _NEUTRAL:
        return "neutral"
    return "positive" if score > 0 else "negative"
