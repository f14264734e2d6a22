"""The mock's embeddings."""

from __future__ import annotations

import math

from rowcall.mock.embedding import DIMENSIONS, embedding


def cosine(a, b):
    return sum(x * y for x, y in zip(embedding(a), embedding(b), strict=True))


def test_texts_that_share_words_point_alike():
    """A text is nearer to one that shares words with it than to one that does not, and has length 1."""
    assert len(embedding("a cat")) == DIMENSIONS
    assert math.isclose(math.hypot(*embedding("the black cat sleeps")), 1, abs_tol=1e-5)
    near = cosine("the black cat sleeps", "the black cat eats")
    assert near > cosine("the black cat sleeps", "stock markets fell sharply today")


def test_a_text_without_words_has_no_direction():
    """Nothing but punctuation gives zeros, not an error."""
    assert embedding("...") == [0.0] * DIMENSIONS
