import pytest

from rowcall.config import environment
from rowcall.model.errors import ConfigError


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=abc", "abc"),
        ("export KEY = abc  ", "abc"),
        ("KEY=a b # comment", "a b"),
        ("KEY=a#b=c", "a#b=c"),
        ("KEY=", ""),
        ("KEY= # nothing", ""),
        ("KEY='a \\n # \"b\"'  # comment", 'a \\n # "b"'),
        (r'KEY="a\nb \"c\" \\ # d"', 'a\nb "c" \\ # d'),
        ("\ufeffKEY=abc", "abc"),
        ("# KEY=no\n\n  KEY=yes\r", "yes"),
        ("KEY=1\nKEY=2", "2"),
    ],
)
def test_lines_give_variables(tmp_path, line, value):
    """Every common way to write a line of .env gives its value."""
    (tmp_path / ".env").write_text(line)
    assert environment(tmp_path / ".env", {}) == {"KEY": value}


def test_the_process_goes_before_the_file(tmp_path):
    """What is exported wins over .env, and a missing file adds nothing."""
    (tmp_path / ".env").write_text("A=file\nB=file")
    assert environment(tmp_path / ".env", {"A": "process"}) == {"A": "process", "B": "file"}
    assert environment(tmp_path / "none", {"A": "process"}) == {"A": "process"}


def test_lines_that_cannot_be_read_are_named_and_not_repeated(tmp_path):
    """All of them at once, by number, without what stands in them."""
    (tmp_path / ".env").write_text('hidden\nA=1\n2B=hidden\nC=\'hidden\nD="hidden" x')
    with pytest.raises(ConfigError) as caught:
        environment(tmp_path / ".env", {})
    assert [problem.where for problem in caught.value.problems] == [f"{tmp_path}/.env:{n}" for n in (1, 3, 4, 5)]
    assert "hidden" not in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    """A .env in another encoding, or a folder of that name, is refused by name."""
    (tmp_path / "latin").write_bytes(b"A=\xe9")
    for name in ("latin", "."):
        with pytest.raises(ConfigError, match="cannot be read"):
            environment(tmp_path / name, {})
