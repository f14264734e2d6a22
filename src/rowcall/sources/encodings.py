"""From bytes to text: what an encoding makes of a file, and the characters that no record may hold."""

from __future__ import annotations

import codecs
import io
import re
from typing import BinaryIO, TextIO

from rowcall.model.errors import InputError
from rowcall.sources.bad_lines import LineFault

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins alike
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UNDECODED = "rowcall.undecoded"
_REFUSED = re.compile("[\0\ud800-\udfff]")
_SAVED_AS = 'set encoding under [input] to what the file was saved in, such as "cp1252", "latin-1" or "utf-16"'


def check_encoding(name: str, encoding: str | None) -> None:
    """Refuse what is no text encoding.

    Raises:
        InputError: it is unknown, or turns bytes into bytes.
    """
    try:
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8" if encoding is None else encoding).close()
    except (LookupError, ValueError):
        remedy = 'known are "utf-8", "utf-16", "latin-1", "cp1252", "shift_jis" and what else Python lists as codecs'
        raise InputError(name, f"encoding {encoding!r} is unknown", remedy=remedy) from None


def decoded(binary: BinaryIO, head: bytes, encoding: str | None) -> TextIO:
    """The text of a file that begins with ``head``: by its byte order mark, else ``encoding``, else UTF-8.

    Line ends stay as they are. A byte that cannot be decoded becomes the lone surrogate U+DC00 + byte, so that the
    line it is in is known; ``find_fault`` refuses it there.
    """
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    return io.TextIOWrapper(binary, marked or encoding or "utf-8", _UNDECODED, newline="")


def find_fault(text: str, encoding: str) -> LineFault | None:
    """The first character that no record may hold."""
    if text.isascii() and "\0" not in text:  # a tenth of what the search costs
        return None
    found = _REFUSED.search(text)
    if found is None:
        return None
    character = ord(found[0])
    if character == 0:
        return NUL
    if 0xDC00 <= character <= 0xDCFF:
        byte = character - 0xDC00
        return LineFault(
            f"not {encoding.removesuffix('-sig')}: byte 0x{byte:02x} at character {found.start() + 1}", _SAVED_AS
        )
    return LONE_SURROGATE


def empty(name: str) -> InputError:
    """What to raise where a file holds nothing."""
    return InputError(name, "is empty", remedy="check what wrote it; a file with a header line and no records is fine")


NUL = LineFault("a NUL character", f"take it out; where every other character is NUL, {_SAVED_AS}")
LONE_SURROGATE = LineFault("a lone surrogate, half of a character", "put in the whole character, or take it out")


def _mark_undecoded(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_UNDECODED, _mark_undecoded)
