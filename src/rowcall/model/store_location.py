"""Where a store is: a file, or a database of a PostgreSQL server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, unquote, urlencode

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Credentials end at the last @ before the first slash, so that no part of a password is taken for a host.
_URL = re.compile(
    r"(?i:postgres(?:ql)?)://(?:(?P<user>[^/]*)@)?(?P<hosts>[^/?@]*)(?:/(?P<database>[^?@]*))?(?:\?(?P<query>.*))?"
)
_SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service")
"""Parameters of a URL that say where the database is; others, which may be secret, are not shown."""


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Where a store is. Its text is for people: a URL without password and without what else may be secret.

    Attributes:
        path: the SQLite file; None: the store is no file.
        url: that of the PostgreSQL database, as libpq takes it
            (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS); it may hold a password.
    """

    path: Path | None
    url: str = field(default="", repr=False)

    @classmethod
    def of(cls, written: str, folder: Path = Path()) -> Self:
        """The place that a person names: a path, relative to ``folder``, or a URL.

        Raises:
            ValueError: neither, with the words for the message, which never repeat a URL.
        """
        if not _SCHEME.match(written):
            return cls(folder / _expanded(written))
        found = _URL.fullmatch(written)
        if not found or "@" in (found["user"] or "") or not written.isprintable() or " " in written:
            raise ValueError(
                "must be a file, or a URL such as postgresql://user@host/database;"
                " / @ ? and spaces in a password are written %2F %40 %3F %20"
            )
        return cls(None, written)

    def __str__(self) -> str:
        if self.path is not None:
            return str(self.path)
        found = _URL.fullmatch(self.url)
        assert found is not None  # ``of`` has seen to it
        user = (found["user"] or "").partition(":")[0]
        shown = [(name, value) for name, value in parse_qsl(found["query"] or "") if name in _SHOWN]
        where = f"{found['hosts']}/{found['database'] or ''}".rstrip("/")
        return f"postgresql://{user}{'@' if user else ''}{where}{'?' if shown else ''}{urlencode(shown)}"

    @property
    def is_secret(self) -> bool:
        """Whether the place as it was written holds more than may be shown."""
        return self.path is None and str(self) != self.url

    @property
    def stem(self) -> str:
        """What it is called: the file's name without its suffix, or the database's."""
        if self.path is not None:
            return self.path.stem
        found = _URL.fullmatch(self.url)
        return Path(unquote((found and found["database"]) or "")).name or "rowcall"

    def is_at(self, path: Path) -> bool:
        """Whether the store is that very file."""
        return self.path is not None and path.resolve() == self.path.resolve()


def _expanded(written: str) -> Path:
    try:
        return Path(written).expanduser()
    except RuntimeError:  # nobody has that home
        raise ValueError("must be a file; the home folder that ~ stands for cannot be found") from None
