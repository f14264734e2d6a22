"""Whether a file is on a network file system, where SQLite's WAL mode is not safe."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NETWORK = frozenset(
    {
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "afs",
            "ceph",
            "lustre",
            "beegfs",
            "gpfs",
            "glusterfs",
            "ncpfs",
            "9p",
        ),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.davfs"),
    }
)
"""Their names in the kernel's list of mounts: proc_pid_mountinfo(5), the field after the hyphen."""


def network_file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The kind of network file system that holds ``path``, such as ``nfs4``; None for a local one, or where unknown.

    Args:
        path: a file, which need not be there yet.
        mounts: the kernel's list; only Linux has it.
    """
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    place = os.path.realpath(path.parent)
    kind = max(
        (found for line in lines if (found := _mount(line)) and _holds(found[0], place)), default=None, key=_depth
    )
    return kind[1] if kind and kind[1] in _NETWORK else None


def _mount(line: str) -> tuple[str, str] | None:
    """Where a line's file system is mounted, and its kind."""
    before, hyphen, after = line.partition(" - ")
    fields, kind = before.split(" "), after.split(" ")[0]
    if not hyphen or len(fields) < 5:
        return None
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]), kind


def _holds(mounted: str, place: str) -> bool:
    return place == mounted or place.startswith(mounted.rstrip("/") + "/")


def _depth(mount: tuple[str, str]) -> int:
    return len(mount[0])
