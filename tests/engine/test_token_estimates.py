"""Tokens before anybody has counted them."""

from __future__ import annotations

import json

import pytest

from rowcall.limits.token_estimates import Estimator


def body(text="x" * 400, **more):
    return json.dumps({"messages": [{"role": "user", "content": text}], **more}).encode()


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_the_bodys_own_limit_is_the_output(name):
    """Where a body limits its output, that is what is expected."""
    assert Estimator().estimate(body(**{name: 77})).output == 77


def test_a_limit_inside_a_table():
    """Gemini's limit stands one level below."""
    assert Estimator().estimate(body(generationConfig={"maxOutputTokens": 9})).output == 9


def test_characters_at_first():
    """Four characters to a token, counted as characters and not as bytes."""
    assert Estimator().estimate(b'"' + "ä".encode() * 398 + b'"').input == 100


def test_the_ratio_is_learned():
    """After replies that report two characters to a token, the estimate follows; output comes from replies too."""
    estimator = Estimator()
    for _ in range(60):
        estimate = estimator.estimate(body())
        estimator.learn(estimate, estimate.characters // 2, 30)
    assert estimator.estimate(body()).input == pytest.approx(len(body()) / 2, rel=0.02)
    assert estimator.estimate(body()).output == pytest.approx(30, rel=0.02)


@pytest.mark.parametrize(
    "odd", [b"", b"\xff\xfe", b"[1]", b"nonsense", b'{"max_tokens": "many"}', b'{"max_tokens": true}']
)
def test_any_body_has_an_estimate(odd):
    """What is no JSON, or has no such limit, is counted by its characters alone."""
    assert Estimator().estimate(odd).output == 0
