"""The location of a store: a SQLite file or a PostgreSQL database."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, unquote, urlencode

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Credentials end at the last @ before the first slash, so that no part of a password is mistaken for a host.
_URL = re.compile(
    r"(?i:postgres(?:ql)?)://(?:(?P<user>[^/]*)@)?(?P<hosts>[^/?@]*)(?:/(?P<database>[^?@]*))?(?:\?(?P<query>.*))?"
)
_SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service")
"""URL parameters that say where the database is. All others may be secret and are never shown."""


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """The location of a store. ``str()`` gives it without a password and without any other part that may be secret.

    Attributes:
        path: the SQLite file; None for a PostgreSQL database.
        url: the URL of the PostgreSQL database in libpq's form
            (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS); it may hold a password.
    """

    path: Path | None
    url: str = field(default="", repr=False)

    @classmethod
    def of(cls, written: str, folder: Path = Path()) -> Self:
        """Parse a path, relative to ``folder``, or a URL.

        Raises:
            ValueError: it is neither; the message never repeats a URL, which may hold a password.
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
        assert found is not None  # checked by ``of``
        user = (found["user"] or "").partition(":")[0]
        shown = [(name, value) for name, value in parse_qsl(found["query"] or "") if name in _SHOWN]
        where = f"{found['hosts']}/{found['database'] or ''}".rstrip("/")
        return f"postgresql://{user}{'@' if user else ''}{where}{'?' if shown else ''}{urlencode(shown)}"

    @property
    def is_secret(self) -> bool:
        """Whether the URL holds more than may be shown."""
        return self.path is None and str(self) != self.url

    @property
    def stem(self) -> str:
        """The name of the file without its suffix, or the name of the database."""
        if self.path is not None:
            return self.path.stem
        found = _URL.fullmatch(self.url)
        return Path(unquote((found and found["database"]) or "")).name or "rowcall"

    def is_at(self, path: Path) -> bool:
        """Whether the store is this file."""
        return self.path is not None and path.resolve() == self.path.resolve()


def _expanded(written: str) -> Path:
    try:
        return Path(written).expanduser()
    except RuntimeError:  # the user named after ~ does not exist
        raise ValueError("must be a file; the home folder that ~ stands for cannot be found") from None
