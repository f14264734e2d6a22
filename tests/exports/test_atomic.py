"""Files that are replaced as a whole or not at all, whatever happens and whoever else writes."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rowcall.model.errors import OutputError
from rowcall.system import atomic_files


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def replace(path, content):
    with atomic_files.replacing(path) as file:
        file.write(content)


def test_a_new_file_and_one_that_is_there(tmp_path):
    """The content is there when the block has ended, and nothing else is."""
    for content in (b"new", b"newer"):
        replace(tmp_path / "a", content)
        assert (tmp_path / "a").read_bytes() == content
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file(tmp_path, error):
    """Until the block ends well the old file stands, and nothing is left over."""
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(error), atomic_files.replacing(tmp_path / "a") as file:  # noqa: PT012  what the block does matters
        file.write(b"half" * 100_000)
        assert (tmp_path / "a").read_bytes() == b"old"
        raise error
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_mode_is_that_of_a_plain_open(tmp_path, umask):
    """A new file has the mode that the umask gives, an old one keeps its own."""
    before = os.umask(umask)
    try:
        replace(tmp_path / "a", b"")
        (tmp_path / "plain").write_bytes(b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "a").chmod(0o640)
    replace(tmp_path / "a", b"")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_link_is_followed(tmp_path):
    """The file that a link leads to is replaced, in its own folder; the link stays, also one that leads nowhere yet."""
    (tmp_path / "real").mkdir()
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(f"real/{name}")
    (tmp_path / "real" / "a").write_bytes(b"old")
    for name in ("a", "b"):
        replace(tmp_path / name, b"new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "real" / name).read_bytes() == b"new"
    assert names(tmp_path) == ["a", "b", "real"]


def test_what_is_no_regular_file_is_written_to(tmp_path):
    """A named pipe is never replaced by a file (nor is a device, which no test may put at risk)."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace(tmp_path / "pipe", b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_what_cannot_be_written(tmp_path):
    """A missing folder, a folder, and a file in place of a folder each get their own words and a remedy."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for path, what in (
        ("none/a", "its folder does not exist"),
        ("folder", "it is a folder"),
        ("file/a", "its folder is a file"),
        ("x" * 300, "File name too long"),
    ):
        with pytest.raises(OutputError, match=what) as caught:
            replace(tmp_path / path, b"")
        assert caught.value.remedy
        assert str(tmp_path / path) in caught.value.message


AS_NOBODY = """
import os, sys
from pathlib import Path
from rowcall.model.errors import OutputError
from rowcall.system.atomic_files import replacing
if os.geteuid() == 0:
    os.setuid(65534)
for path in sys.argv[1:]:
    try:
        with replacing(Path(path)) as file:
            file.write(b"new")
    except OutputError as error:
        print(error.message)
"""


@pytest.fixture
def open_folder():
    """A folder that every user may enter and write to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_what_may_not_be_written(open_folder):
    """A read-only folder, and a read-only file in a folder that is not, are left as they are."""
    (open_folder / "folder").mkdir(mode=0o555)
    (open_folder / "file").write_bytes(b"old")
    (open_folder / "file").chmod(0o444)
    paths = [str(open_folder / "folder" / "a"), str(open_folder / "file")]
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{path} cannot be written: permission denied" for path in paths]
    assert (open_folder / "file").read_bytes() == b"old"
    assert names(open_folder) == ["file", "folder"]


def test_a_full_disk(tmp_path):
    """No space, here by a limit of the process, is told; the old file stays, and nothing is left over."""
    (tmp_path / "a").write_bytes(b"old")
    code = (
        "import resource, signal, sys; from pathlib import Path; from rowcall.system import atomic_files\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "with atomic_files.replacing(Path(sys.argv[1])) as file:\n"
        "    for _ in range(100): file.write(b'x' * 5000)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a"], capture_output=True, text=True, check=False)
    assert "OutputError" in done.stderr.splitlines()[-2]
    assert "File too large" in done.stderr
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_space(number):
    """Where no space is left the message says that nothing in the store is lost."""
    with pytest.raises(OutputError, match=r"^a\.csv cannot be written: ") as caught, atomic_files.explained("a.csv"):
        raise OSError(number, "")
    assert "nothing in the store is lost" in caught.value.remedy


WRITE = """
import sys
from pathlib import Path
from rowcall.output import open_export
for turn in range(20):
    with open_export(sys.argv[1]) as file:
        for n in range(300):
            file.write({"n": n, "writer": sys.argv[2]})
"""


def test_several_write_one_path(tmp_path):
    """While four processes export to one path, whoever reads it sees the complete file of one of them."""
    path = tmp_path / "a.csv"
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, path, str(n)]) for n in range(4)]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            lines = path.read_text().splitlines()
            assert len(lines) == 301
            seen |= {frozenset(line.split(",")[1] for line in lines[1:])}
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    assert seen
    assert all(len(of_one) == 1 for of_one in seen)
    assert names(tmp_path) == ["a.csv"]


def test_what_a_dead_process_left_is_removed(tmp_path):
    """The next export of the same file removes what a killed one left; other files' and living ones' stay."""
    script = "import os, sys, pathlib\nfrom rowcall.system.atomic_files import replacing\n"
    script += "held = replacing(pathlib.Path(sys.argv[1])); held.__enter__(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script, tmp_path / "a.csv"], check=False)
    [left] = tmp_path.glob(".rowcall-*.tmp")
    with atomic_files.replacing(tmp_path / "b.csv") as file:
        file.write(b"b")
        assert left.exists()
        with atomic_files.replacing(tmp_path / "a.csv") as first:
            first.write(b"1")
            assert not left.exists()
            with atomic_files.replacing(tmp_path / "a.csv") as second:
                second.write(b"2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]
    assert (tmp_path / "a.csv").read_bytes() == b"1"
