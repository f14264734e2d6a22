"""How far ahead jobs are claimed: arithmetic alone."""

from __future__ import annotations

import pytest

from rowcall.engine.claim_ahead import ClaimAhead


@pytest.mark.parametrize(
    ("slots", "left", "seconds", "ahead"),
    [
        (200, 0, 1.0, 50),  # a quarter of the slots at any speed
        (10, 0, 1.0, 2),
        (1, 0, 1.0, 0),
        (1, 1, 60.0, 0),  # long calls: nothing is held back from other processes
        (10, 10, 1.0, 2),
        (10, 10, 0.1, 10),  # what leaves within 100 ms
        (10, 10, 0.001, 10),
        (2, 10, 0.001, 2),
        (32, 3, 0.0, 16),
    ],
)
def test_what_soon_leaves_is_claimed_ahead(slots, left, seconds, ahead):
    """By the speed since the last claim, within its bounds."""
    headway = ClaimAhead()
    headway.claim(5.0)
    for _ in range(left):
        headway.leave()
    assert headway.ahead(slots, 5.0 + seconds) == ahead


def test_a_claim_begins_the_count_anew():
    """What left before the last claim says nothing."""
    headway = ClaimAhead()
    headway.leave()
    headway.claim(5.0)
    assert headway.ahead(10, 5.1) == 2
