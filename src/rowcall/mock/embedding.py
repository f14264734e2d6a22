"""Embeddings by feature hashing: texts that share words point in similar directions.

Each word adds +1 or -1 to one of 64 places, both drawn from a hash of it (Weinberger et al., ICML 2009); the vector
then has length 1.
"""

from __future__ import annotations

import hashlib
import math
import re

PLACES = 64

_WORD = re.compile(r"[\w']+")


def embedding(text: str) -> list[float]:
    """The direction of a text, 64 numbers of length 1; zeros where it has no word."""
    places = [0.0] * PLACES
    for word in _WORD.findall(text.lower()):
        drawn = hashlib.blake2b(word.encode(), digest_size=2).digest()
        places[drawn[0] % PLACES] += 1.0 if drawn[1] % 2 else -1.0
    length = math.hypot(*places)
    return [round(place / length, 6) for place in places] if length else places
