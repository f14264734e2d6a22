"""A store on a network file system is refused."""

from __future__ import annotations

import pytest

from rowcall.model.errors import Unavailable
from rowcall.store.sqlite.file import connect_writing
from rowcall.store.sqlite.network_disk import network_file_system

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / {here}/data rw,relatime shared:2 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / {here}/data/local rw - tmpfs tmpfs rw
32 22 0:42 / {here}/my\040share rw - cifs //server/share rw
33 22 0:43 / {here}/home rw - fuse.sshfs me@host: rw
torn line
"""


@pytest.fixture
def mounts(tmp_path):
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS.replace("{here}", str(tmp_path)))
    return path


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("reviews.db", None),
        ("data/reviews.db", "nfs4"),
        ("data/deep/down/reviews.db", "nfs4"),
        ("data/local/reviews.db", None),
        ("database/reviews.db", None),
        ("my share/reviews.db", "cifs"),
        ("home/reviews.db", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_counts(tmp_path, mounts, place, kind):
    """A file lies on the file system that is mounted nearest above it."""
    assert network_file_system(tmp_path / place, mounts) == kind


def test_where_no_list_is_nothing_is_refused(tmp_path):
    """A system that has no such list is not refused anything."""
    assert network_file_system(tmp_path / "reviews.db", tmp_path / "missing") is None


def test_the_message_says_what_to_do(tmp_path, monkeypatch):
    """The refusal names the file, the kind and the remedy, and makes no file."""
    monkeypatch.setattr("rowcall.store.sqlite.file.network_file_system", lambda path: "nfs4")
    with pytest.raises(
        Unavailable, match=r"reviews\.db: is on a network file system \(nfs4\).*\n  Name a file on a local"
    ):
        connect_writing(tmp_path / "reviews.db")
    assert not (tmp_path / "reviews.db").exists()
