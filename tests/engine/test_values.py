"""JSON values read back from the store are what they were."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowcall.model import json_values

NUMBERS = st.sampled_from(
    ["0", "-0", "1.0", "1.10", "1e5", "1e16", "1e+16", "1E5", "0.00001", "0.1", "9" * 40, f"{2**53 + 1}"]
)
TEXTS = st.text(max_size=8) | st.sampled_from(["1e5", "\u2028", '"', "\\u00e9"])
RECORDS = st.dictionaries(
    TEXTS,
    NUMBERS.map(json_values.loads) | TEXTS | st.floats(allow_nan=False, allow_infinity=False) | st.none(),
    max_size=4,
)


def alike(found, wanted):
    return json_values.dumps(found) == json_values.dumps(wanted) and str(found) == str(wanted)


@example({"a": 6.103515625e-05})
@settings(max_examples=200, deadline=None)
@given(RECORDS)
def test_read_back(record):
    """What was written comes back with each number as ``loads`` gives it, its text included."""
    text = json_values.dumps(record).decode()
    assert alike(json_values.read_back(text), json_values.loads(text))


@pytest.mark.parametrize(
    "text", ['{"a": 1e5}', '{"a":1,"a":2}', '"\\u00e9"', "1e16", "1.50", "-0", "[1.0,2]", '"\\ud83d\\ude00"', " [1] "]
)
def test_read_back_of_other_text(text):
    """JSON that was written by hand is read exactly too."""
    assert alike(json_values.read_back(text), json_values.loads(text))


@pytest.mark.parametrize("text", ["", "{", "NaN", '"\\ud800"', "[" * 2000])
def test_read_back_refuses(text):
    """What is no JSON is refused as ``loads`` refuses it."""
    with pytest.raises(ValueError, match=r"."):
        json_values.loads(text)
    with pytest.raises(ValueError, match=r"."):
        json_values.read_back(text)
