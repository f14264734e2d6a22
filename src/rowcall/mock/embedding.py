"""Makes embeddings by feature hashing, so that texts with common words have similar vectors.

Each word adds +1 or -1 to one of 64 dimensions; a hash of the word decides both (Weinberger et al., ICML 2009). The
vector is then scaled to length 1.
"""

from __future__ import annotations

import hashlib
import math
import re

DIMENSIONS = 64

_WORD = re.compile(r"[\w']+")


def embedding(text: str) -> list[float]:
    """Return the embedding of a text: 64 numbers, a vector of length 1; all zeros if the text has no words."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        drawn = hashlib.blake2b(word.encode(), digest_size=2).digest()
        vector[drawn[0] % DIMENSIONS] += 1.0 if drawn[1] % 2 else -1.0
    length = math.hypot(*vector)
    return [round(value / length, 6) for value in vector] if length else vector
