"""Content codings of a reply, however it is cut into packets."""

import gzip
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.client.content_coding import decoder_for


@settings(max_examples=60, deadline=None)
@given(
    body=st.binary(max_size=300),
    coding=st.sampled_from(["gzip", "x-gzip", "deflate", "identity", ""]),
    cuts=st.lists(st.integers(1, 40), max_size=9),
    members=st.integers(1, 3),
    padding=st.sampled_from([b"", b"\0" * 9]),
)
def test_decoding_does_not_depend_on_the_packets(body, coding, cuts, members, padding):
    """However a body is cut into packets and members, it is decoded to the same, and its end is known."""
    raw = body * members
    if "gzip" in coding:
        raw = gzip.compress(body, mtime=0) * members + padding
    elif coding == "deflate":
        raw = zlib.compress(body * members) + padding
    decoder = decoder_for(coding)
    decoded, rest = b"", raw
    for size in [*cuts, len(raw)]:
        packet, rest = rest[:size], rest[size:]
        if packet:
            decoder.feed(packet)
        while piece := decoder.take():
            decoded += piece
    assert decoded == body * members
    assert decoder.whole()


@given(cut=st.integers(1, 40))
def test_an_unfinished_gzip_body_is_known(cut):
    """A compressed body that was cut off anywhere is not taken for a whole one."""
    raw = gzip.compress(b"some text that is long enough", mtime=0)
    decoder = decoder_for("gzip")
    decoder.feed(raw[:-cut])
    while decoder.take():
        pass
    assert not decoder.whole()
