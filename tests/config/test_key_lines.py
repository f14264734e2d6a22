import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.config import key_lines

HOSTILE = '''\
# [comment] = "table"
"quoted key" = 1 # [not] = a table
'a.b' . c = 2
text = """
[look.alike]
key = "value" # no comment
\\""" still text """""
raw = \'\'\'
[[also]]
x = '\'\'\'
empty = """"""
hash = "# no comment, [no, table]"
when = 1979-05-27 07:32:00Z
list = [ # first
  1, [ "]", '}' ],
  # nothing here
  { deep.er = "x", "y" = [
    3 ] },
]
inline = { a = { b = 1 }, c.d = [{ e = 2 }] } # } = {

[ table . "in.ner" ]
k = true
"\\u00e9\\"" = 1.5
[[rows]]
n = 1
[rows.sub]
m = 2
[[rows]]
  [[rows.many]]
  z = 0
  [[rows.many]]
[later.super]
[later]
v = nan
'''

LINES = {
    ("quoted key",): 2,
    ("a.b",): 3,
    ("a.b", "c"): 3,
    ("text",): 4,
    ("raw",): 8,
    ("empty",): 11,
    ("hash",): 12,
    ("when",): 13,
    ("list",): 14,
    ("list", 0): 15,
    ("list", 1): 15,
    ("list", 1, 0): 15,
    ("list", 1, 1): 15,
    ("list", 2): 17,
    ("list", 2, "deep"): 17,
    ("list", 2, "deep", "er"): 17,
    ("list", 2, "y"): 17,
    ("list", 2, "y", 0): 18,
    ("inline",): 20,
    ("inline", "a"): 20,
    ("inline", "a", "b"): 20,
    ("inline", "c"): 20,
    ("inline", "c", "d"): 20,
    ("inline", "c", "d", 0): 20,
    ("inline", "c", "d", 0, "e"): 20,
    ("table",): 22,
    ("table", "in.ner"): 22,
    ("table", "in.ner", "k"): 23,
    ("table", "in.ner", 'é"'): 24,
    ("rows",): 25,
    ("rows", 0): 25,
    ("rows", 0, "n"): 26,
    ("rows", 0, "sub"): 27,
    ("rows", 0, "sub", "m"): 28,
    ("rows", 1): 29,
    ("rows", 1, "many"): 30,
    ("rows", 1, "many", 0): 30,
    ("rows", 1, "many", 0, "z"): 31,
    ("rows", 1, "many", 1): 32,
    ("later",): 34,
    ("later", "super"): 33,
    ("later", "v"): 35,
}


def paths(node, path=()):
    """Every path that tomllib knows."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from paths(value, (*path, key))


def test_every_key_of_a_hostile_file_has_its_line():
    """Look-alikes in strings and comments move no line, and no key is left out."""
    assert key_lines(HOSTILE) == LINES


def test_the_hostile_file_says_what_this_test_thinks():
    """The expected paths are those that tomllib finds."""
    assert set(paths(tomllib.loads(HOSTILE))) == set(LINES)


bits = st.sampled_from(list("ab1[]{}=#,.'\"\\ -"))
words = st.text(bits, max_size=8)


def basic(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def written_string(text):
    """A text in each of the four quotes that can hold it."""
    forms = [basic(text), '"""\n' + basic(text)[1:-1] + '\n"""']
    if "'" not in text:
        forms += [f"'{text}'", f"'''\n{text}\n\n'''"]
    return st.sampled_from(forms)


scalars = st.one_of(words.flatmap(written_string), st.sampled_from(["1_000", "1e5", "07:32:00", "-inf", "true"]))


@st.composite
def documents(draw):
    """A TOML text with the line of each of its keys."""
    lines, text = {}, ""
    for table in draw(st.lists(st.sampled_from(["t", "u", "v"]), unique=True, max_size=3)):
        text += draw(st.sampled_from(["", "# [x] = 1\n", "\n\n"]))
        lines[(table,)] = text.count("\n") + 1
        text += f"[ {table} ] # [[y]]\n"
        for key in draw(st.lists(words, unique=True, max_size=4)):
            lines[(table, key)] = text.count("\n") + 1
            text += f"{basic(key)} = "
            if draw(st.booleans()):
                text += draw(scalars)
            else:
                text += "[" + draw(st.sampled_from(["", "\n", " # ]\n"]))
                for number, value in enumerate(draw(st.lists(scalars, max_size=3))):
                    lines[(table, key, number)] = text.count("\n") + 1
                    text += value + draw(st.sampled_from([",", " ,\n", "\n,\n# ,]\n"]))
                text += "]"
            text += draw(st.sampled_from(["\n", " # = [\n"]))
    return text, lines


@settings(deadline=None, max_examples=150)
@given(documents())
def test_lines_are_exact_in_any_file(document):
    """Keys and list items have the line on which they were written, in whatever strings stand around them."""
    text, lines = document
    assert set(paths(tomllib.loads(text))) == set(lines)
    assert key_lines(text) == lines


def test_line_ends_of_windows_count_once():
    """A file with CRLF has the lines that an editor shows."""
    assert key_lines("a = 1\r\n\r\n[t]\r\nb = [\r\n 2]\r\n") == {
        ("a",): 1,
        ("t",): 3,
        ("t", "b"): 4,
        ("t", "b", 0): 5,
    }


def test_a_table_that_grows_key_by_key_stands_where_it_began():
    """Dotted keys share their table; its line is that of the first of them."""
    assert key_lines("a.b = 1\na.c = 2\n") == {("a",): 1, ("a", "b"): 1, ("a", "c"): 2}
