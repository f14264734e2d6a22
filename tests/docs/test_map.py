"""The documents say what is there: the map of the source, the commands, the links, the examples."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "rowcall"
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "tests").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
README = (ROOT / "README.md").read_text()
EXAMPLES = (ROOT / "examples" / "README.md").read_text()
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|toml|md|sql|svg|yaml|sh))")
CREATED = {"config.toml", "examples/reviews/labels.csv"}  # what a user writes, or a run


def section(text: str, title: str) -> str:
    """The part of a document below a heading, up to the next one of its level."""
    level = re.escape(title.split(" ")[0])
    return re.search(rf"^{re.escape(title)}\n(.*?)(?=^{level} |\Z)", text, re.MULTILINE | re.DOTALL)[1]


def cells(text: str) -> list[list[str]]:
    """The rows of the first table in a text, without its head."""
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n?)+)", text, re.MULTILINE)[1]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def folders(inside: Path) -> set[str]:
    """The folders directly inside a folder, without bytecode and what a switch of branches leaves behind."""
    return {path.parent.name for path in inside.glob("*/*") if path.is_file()} - {"__pycache__"}


ROOMS = {row[0].strip("`/"): row[1] for row in cells(section(CONTRIBUTING, "## The map"))}


def test_every_room_has_its_line():
    """The map names the folders of the source, each once, and no others."""
    assert set(ROOMS) == folders(SOURCE)
    assert len(ROOMS) == len(cells(section(CONTRIBUTING, "## The map")))
    assert all(ROOMS.values())


def test_every_file_beside_the_rooms_is_named():
    """What stands loose at the top is on the map too, and there is little of it."""
    loose = {path.name for path in SOURCE.iterdir() if path.is_file()}
    beside = re.search(r"^Beside the rooms: .*$", CONTRIBUTING, re.MULTILINE)[0]
    assert all(f"`{name}`" in beside for name in loose)
    assert len(loose) + len(ROOMS) <= 24


@pytest.mark.parametrize("room", ROOMS)
def test_the_line_of_a_room_names_the_folders_in_it(room):
    """Every folder inside a room is in its line, and none is that is not there."""
    assert set(re.findall(r"`(\w+)/`", ROOMS[room])) == folders(SOURCE / room)


def test_the_map_has_the_floors_of_the_import_contract():
    """The floors stand in the same order as those that lint-imports keeps."""
    layers = re.search(r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)[1]
    kept = [re.findall(r"\w+", floor) for floor in re.findall(r'^    "(.*?)"', layers, re.MULTILINE)]
    drawn = [re.findall(r"`(\w+)`", row[0]) for row in cells(section(CONTRIBUTING, "### The floors"))]
    assert [floor for floor in kept if floor != ["__main__"]] == drawn


@pytest.mark.parametrize("path", sorted(set(PATH.findall(" ".join(re.findall(r"`([^`\n]+)`", CONTRIBUTING))))))
def test_every_path_that_is_named_is_there(path):
    """A path stands from the root, from the source, or is the name of a file in one of the rooms."""
    if path in CREATED:
        return
    inside = [ROOT / path, SOURCE / path, *(SOURCE / room / path for room in ROOMS)]
    assert any(place.exists() for place in inside) or [*(SOURCE / "store").rglob(path)], path


def test_the_glossary_is_short():
    """At most 25 words, each once."""
    words = [row[0] for row in cells(section(CONTRIBUTING, "## Words"))]
    assert len(words) == len(set(words)) <= 25


def test_each_thing_is_added_in_at_most_ten_lines():
    """The ways to add something are short."""
    ways = re.split(r"^### .*\n", section(CONTRIBUTING, "## How to add ..."), flags=re.MULTILINE)[1:]
    assert len(ways) == 4
    assert all(len(way.strip().splitlines()) <= 10 for way in ways)


def test_the_readme_is_short():
    """No more than 1,800 words, tables and commands among them."""
    assert len(README.split()) <= 1800


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_the_first_block_is_two_commands(text):
    """A newcomer copies two lines; the checks run those of the README as they stand."""
    first = re.search(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1].splitlines()
    assert len(first) == 2
    assert all(".venv/bin/" in line for line in first)


def links():
    """Every link of every document, with the document."""
    for document in DOCUMENTS:
        for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            yield pytest.param(document, link, id=f"{document.relative_to(ROOT)} {link}")


@pytest.mark.parametrize(("document", "link"), list(links()))
def test_links_lead_somewhere(document, link):
    """A relative link names a file of the repository."""
    if not link.startswith(("https://", "#")):
        assert (document.parent / link).exists()


def test_every_example_is_listed():
    """Each folder of examples has one line, whose command names a file that is there."""
    rows = cells(EXAMPLES)
    listed = [re.match(r"\[(\w+)\]", row[0])[1] for row in rows]
    assert sorted(listed) == sorted(folders(ROOT / "examples"))
    for name, row in zip(listed, rows, strict=True):
        named = [word for word in shlex.split(row[2].strip("`")) if "/" in word]
        assert named
        assert all(word.startswith(f"examples/{name}/") and (ROOT / word).is_file() for word in named)


@pytest.mark.parametrize("document", ["tests/README.md", "tests/bench/README.md"])
def test_every_test_file_that_is_named_is_there(document):
    """The tables of the tests name files in the folder that their command names, or relative to it."""
    homes = [ROOT / "tests" / "reliability", ROOT / "tests" / "postgres" / "faults"]
    for name in re.findall(r"(?:\.\./)*(?:\w+/)*test_\w+\.py", (ROOT / document).read_text()):
        assert any((home / name).exists() for home in homes), name


def test_the_picture_is_drawn_from_a_run():
    """The README's picture is what picture.py writes: no font or script from elsewhere, and the end of a run."""
    drawn = (ROOT / "examples" / "run.svg").read_text()
    assert "picture.py" in drawn
    assert "3,708&#160;rows" in drawn
    assert set(re.findall(r"https?://[^\s\"<]+", drawn)) == {"http://www.w3.org/2000/svg"}
