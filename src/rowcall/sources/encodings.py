"""Decodes an input: detects its encoding, and finds characters that no record may contain.

The encoding is that of the byte order mark, else of ``[input] encoding``, else UTF-8.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import BinaryIO, TextIO

from rowcall.model.errors import InputError
from rowcall.sources.bad_lines import LineFault

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the start of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UNDECODED = "rowcall.undecoded"
_REFUSED = re.compile("[\0\ud800-\udfff]")
_SAVED_AS = 'set encoding in [input] to the encoding of the file, such as "cp1252", "latin-1" or "utf-16"'


def check_encoding(name: str, encoding: str | None) -> None:
    """Check the name of an encoding.

    Raises:
        InputError: it is unknown, or not an encoding of text (such as base64).
    """
    try:
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8" if encoding is None else encoding).close()
    except (LookupError, ValueError):
        remedy = 'examples are "utf-8", "utf-16", "latin-1", "cp1252", "shift_jis"; all of Python\'s codecs work'
        raise InputError(name, f"encoding {encoding!r} is unknown", remedy=remedy) from None


def decoded(binary: BinaryIO, head: bytes, encoding: str | None) -> TextIO:
    """Decode a file that starts with ``head``: by its byte order mark, else ``encoding``, else UTF-8.

    Line ends stay as they are. A byte that cannot be decoded becomes the lone surrogate U+DC00 + byte instead of an
    error, so that ``find_fault`` can report it with its line, or only that line is skipped.
    """
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    return io.TextIOWrapper(binary, marked or encoding or "utf-8", _UNDECODED, newline="")


def find_fault(text: str, encoding: str) -> LineFault | None:
    """Return the first character that no record may contain, as a fault; None if there is none."""
    if text.isascii() and "\0" not in text:  # ten times as fast as the search
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
            f"not valid {encoding.removesuffix('-sig')}: byte 0x{byte:02x} at character {found.start() + 1}", _SAVED_AS
        )
    return LONE_SURROGATE


def empty(name: str) -> InputError:
    """Return the error for an empty file."""
    return InputError(name, "is empty", remedy="check what wrote it; a file with only a header line is valid")


NUL = LineFault("a NUL character", f"remove it; if every other character is NUL, {_SAVED_AS}")
LONE_SURROGATE = LineFault("a lone surrogate, which is half of a character", "write the whole character, or remove it")


def _mark_undecoded(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_UNDECODED, _mark_undecoded)
