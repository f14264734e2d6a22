"""Keys: by field, by template, by hash."""

import pytest

from rowcall.model import json_values
from rowcall.model.errors import TemplateError
from rowcall.sources.keys import compile_key, record_key
from rowcall.templates.check_columns import check_columns


@pytest.mark.parametrize(
    ("spec", "data", "key"),
    [
        ("id", {"id": "007"}, "007"),
        ("id", {"id": 9007199254740993}, "9007199254740993"),
        ("id", {"id": json_values.loads("1e5")}, "1e5"),
        ("id", {"id": json_values.loads("1.0")}, "1.0"),
        ("id", {"id": json_values.loads("9" * 40)}, "9" * 40),
        ("order id", {"order id": " x "}, " x "),
        ("items", {"items": "a"}, "a"),
        ("{{ row.a }}-{{ row['b c'] }}", {"a": "x", "b c": 2}, "x-2"),
        ("{{ row.id }}", {"id": json_values.loads("1e5")}, "1e5"),
        ("id", {"id": "{{ row.x }}"}, "{{ row.x }}"),
    ],
)
def test_key(spec, data, key):
    """A bare name is a column, braces are a template, and the text is as it was written."""
    assert compile_key(spec)(data) == key


@pytest.mark.parametrize(
    ("spec", "data", "what"),
    [
        ("id", {"id": ""}, "is empty"),
        ("id", {"id": " \t"}, "is empty"),
        ("id", {"id": None}, "is empty"),
        ("{{ row.a }}", {"a": ""}, "is empty"),
        ("id", {"text": "x"}, "no 'id'"),
        ("{{ row.id }}-1", {"text": "x"}, "no 'id'"),
        ("id", {"id": [1]}, "is a list"),
        ("id", {"id": {"a": 1}}, "is a dict"),
        ("id", {"id": True}, "is a bool"),
        ("id", {"id": "a\0b"}, "NUL"),
    ],
)
def test_record_without_a_key(spec, data, what):
    """A key that is missing, empty or no text is an error that says what to do."""
    with pytest.raises(ValueError, match=what) as caught:
        compile_key(spec)(data)
    assert "[input] key" in str(caught.value)


def test_key_of_a_keyless_record():
    """Without a key it is a hash of the record: the same for the same values in any order, another for others."""
    key = compile_key(None)
    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1}) == record_key({"a": 1, "b": 2})
    assert key({"a": "1"}) != key({"a": 1})
    assert len(key({})) == 32


def test_key_names_are_checked():
    """A key's column is known before a record is read."""
    with pytest.raises(TemplateError, match=r"input\.key: no column 'idd'; did you mean row\.id\?"):
        check_columns([compile_key("idd").tree], ["id", "text"])


def test_broken_key_template():
    """A key template with a syntax error is found at once."""
    with pytest.raises(TemplateError, match=r"input\.key"):
        compile_key("{{ row.")
