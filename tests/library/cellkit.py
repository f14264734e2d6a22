"""A notebook's cell: what was shown in its output."""

from __future__ import annotations


class Cell:
    def __init__(self):
        self.outputs = 0
        self.shown = []

    def display(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.outputs += 1
        self.shown.append(bundle)
        return self

    def update(self, bundle, *, raw):
        assert raw
        assert set(bundle) == {"text/plain", "text/html"}
        self.shown.append(bundle)
