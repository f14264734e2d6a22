"""Memory does not grow with the input."""

import itertools
import subprocess
import sys

import pytest

READ = """
import resource, sys
from rowcall.sources import open_source
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = sum(1 for record in open_source(sys.argv[1]))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(count, (after - before) // (1024 if sys.platform == "linux" else 1024 * 1024))
"""
TEXT = "the picture is sharp, the sound is not; " * 4
LINES = {
    "a.csv": ("id,text\n", '{0},"{1}"\n', ""),
    "a.tsv": ("id\ttext\n", "{0}\t{1}\n", ""),
    "a.jsonl": ("", '{{"id":{0},"text":"{1}"}}\n', ""),
    "a.json": ("[", '{{"id":{0},"text":"{1}"}},\n', '{{"id":-1}}]'.format()),
}


@pytest.mark.parametrize("name", LINES)
def test_memory_is_flat(tmp_path, name):
    """60,000 records, 11 MB, take under 5 MB more than none."""
    check(tmp_path / name, *LINES[name], 60_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_memory_is_flat_over_300_000_records(tmp_path, name):
    """300,000 records, 55 MB, take no more than 60,000."""
    check(tmp_path / name, *LINES[name], 300_000)


def check(file, first, line, last, count):
    with file.open("w") as out:
        out.writelines(itertools.chain([first], (line.format(n, TEXT) for n in range(count)), [last]))
    done = subprocess.run([sys.executable, "-c", READ, file], capture_output=True, text=True, check=True)
    found, grown = map(int, done.stdout.split())
    assert found - bool(last) == count
    assert grown < 5
