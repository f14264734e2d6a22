from __future__ import annotations

from pathlib import Path
from statistics import correlation

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.mock.lexicon import INTENSIFIERS, NEGATIONS, VALENCES
from rowcall.mock.sentiment import entry, sentiment

REVIEWS = Path(__file__).parents[2] / "examples" / "reviews" / "reviews.tsv"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("this is a great player and i love it", "positive"),
        ("it stopped working after a week. terrible!", "negative"),
        ("the box has two cables in it", "neutral"),
        ("", "neutral"),
        ("it does not work well", "negative"),
        ("it isn\u2019t bad", "positive"),
        ("the picture is good, but the sound is awful", "negative"),
    ],
)
def test_label(text, label):
    """The label follows from the words of the text, their negations and what comes after a "but"."""
    assert sentiment(text).label == label


def test_intensifiers():
    """An intensifier makes a word say more, a diminisher less, in both directions."""
    assert sentiment("extremely good").score > sentiment("good").score > sentiment("somewhat good").score
    assert sentiment("extremely bad").score < sentiment("bad").score < sentiment("somewhat bad").score


def test_negation_reach():
    """A negation turns the next three words and no more."""
    assert sentiment("not a very good one").score < 0 < sentiment("not what i had but good").score


@pytest.mark.parametrize(
    ("word", "stem"),
    [("loved", "love"), ("crashes", "crash"), ("stopping", "stop"), ("easily", "easily"), ("happiest", "happy")],
)
def test_stem(word, stem):
    """Other forms of a word say what the word says; a form with an entry of its own keeps it."""
    found = entry(word)
    assert (found and found["entry"]) == (stem if stem in VALENCES else None)


def test_entry_kinds():
    """An entry says what kind of word it is, and an unknown word has none."""
    assert entry("Great") == {"word": "great", "kind": "valence", "entry": "great", "valence": 2.8}
    assert entry("never") == {"word": "never", "kind": "negation"}
    assert entry("very") == {"word": "very", "kind": "intensifier", "factor": 1.3}
    assert entry("table") is None


def test_lexicon_is_sound():
    """Every word is of one kind, in the form in which words are found, and says between -4 and 4."""
    assert len(VALENCES) + len(NEGATIONS) + len(INTENSIFIERS) == len({*VALENCES, *NEGATIONS, *INTENSIFIERS})
    assert len(VALENCES) >= 250
    assert all(-4 <= valence <= 4 and valence for valence in VALENCES.values())
    assert all(word == word.lower() and sentiment(word).score for word in VALENCES)


@settings(max_examples=100, deadline=None)
@given(st.text() | st.lists(st.sampled_from([*VALENCES, *NEGATIONS, *INTENSIFIERS, "but", "table"])).map(" ".join))
def test_any_text_has_a_score(text):
    """Whatever the text, the score is on the scale and the label agrees with it."""
    judged = sentiment(text)
    assert -4 <= judged.score <= 4
    expected = "neutral" if abs(judged.score) <= 0.3 else "positive" if judged.score > 0 else "negative"
    assert judged.label == expected


def test_agrees_with_people():
    """Over the example's 3,708 sentences the score goes with what people felt."""
    lines = REVIEWS.read_bytes().decode().split("\r\n")
    rows = [line.split("\t") for line in lines if line]
    assert len(rows) == 3708
    people = [float(score) for _, score, _ in rows]
    assert correlation(people, [sentiment(text).score for _, _, text in rows]) > 0.6
