"""Calls in flight shared over processes: simulated, with words that arrive late."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.processes.share_slots import ProcessSlots, share_slots


class Hand:
    """A process that hears late, and uses all that it was given."""

    def __init__(self, granted=0):
        self.granted = self.acknowledged = self.busy = granted
        self.told = (self.acknowledged, self.busy)
        self.words = []

    def step(self, draw):
        if self.words and draw() < 0.5:
            self.acknowledged = self.words.pop(0)
        ends = sum(draw() < 0.3 for _ in range(self.busy))
        kept = self.busy - ends
        self.busy = max(kept, self.acknowledged if draw() < 0.7 else min(kept, self.acknowledged))
        if draw() < 0.5:
            self.told = (self.acknowledged, self.busy)

    @property
    def holding(self):
        return ProcessSlots(self.granted, *self.told)

    def tell(self, calls):
        if calls != self.granted:
            self.granted = calls
            self.words.append(calls)


@settings(max_examples=50)
@given(st.integers(0, 60), st.integers(1, 6), st.integers(0, 2**32))
def test_all_together_never_have_more_than_there_are(total, processes, seed):
    """However late words and news arrive, and however processes come and go; and at last each has its even share."""
    draw = random.Random(seed).random
    hands = [Hand(total)]
    for step in range(120):
        if len(hands) < processes and draw() < 0.2:
            hands.append(Hand())
        elif len(hands) > 1 and draw() < 0.05 and step < 60:
            hands.pop(1)
        for hand, calls in zip(hands, share_slots(total, [hand.holding for hand in hands]), strict=True):
            hand.tell(calls)
        for hand in hands:
            hand.step(draw)
        assert sum(hand.busy for hand in hands) <= total
    assert sum(hand.granted for hand in hands) == total
    assert max(hand.granted for hand in hands) - min(hand.granted for hand in hands) <= 1


def test_a_total_that_fell_is_reached_by_waiting():
    """Nobody is told more before the sum is below the new total."""
    before = [ProcessSlots(20, 20, 20), ProcessSlots(20, 20, 20)]
    assert share_slots(10, before) == [5, 5]
    assert share_slots(50, [ProcessSlots(5, 20, 20), ProcessSlots(5, 5, 5)]) == [5, 25]
