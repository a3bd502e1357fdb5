"""However a log is cut into feeds, the segments are the same."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.runs.reading import Segments, segments_of

MIXED = (
    b"\x1b[32m\n[QUARK-INFO]: \xe2\x80\x9cstart\xe2\x80\x9d.\x1b[0m\r\n\n"
    b"\r  0%|  | 0/8\rCalibrating: \xe2\x96\x88\xf0\x9f\x98\x80|\x1b]0;title\x07 8/8\n\xff\xfe half \xe2\x96"
)

# The bytes that matter to a reader of logs, and few others, so that they meet each other often.
CONTROL = [b"7", b";", b"m", b"[", b"]", b"(", b"\\", b" ", b"\x07", b"\x1b", b"\x1b[", b"\x1b]"]
TEXT = [b"a", b"word", b"\n", b"\r", b"\xe2", b"\x96", b"\x88", b"\xe2\x96\x88", b"\xf0\x9f", b"\xff", b"\xc0\x80"]
LOGS = st.lists(st.sampled_from([*CONTROL, *TEXT]), max_size=60).map(b"".join)


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def fed(feeds: Iterable[bytes], longest: int = 64 * 1024) -> list[str]:
    segments = Segments(longest)
    return [segment for data in feeds for segment in segments.feed(data)] + segments.finish()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\ntwo\rthree\r\nfour", ["one", "two", "three", "four"]),
        (b"\n\n", ["", ""]),
        (b"\r\n\r\n", ["", ""]),
        (b"\n\r", ["", ""]),
        (b"\r\r\n", ["", ""]),
        (b"bar\r", ["bar"]),
        (b"\x1b[32m\n[QUARK-INFO]: x.\x1b[0m\n", ["", "[QUARK-INFO]: x."]),
        (b"a\x1b[1;31mb\x1b[Kc", ["abc"]),
        (b"a\x1b]8;;http://host/\x1b\\link\x1b]8;;\x07b", ["alinkb"]),
        (b"a\x1b(0b\x1b(Bc\x1b7d\x1bMe", ["abcde"]),
        (b"a\x1bPq#0\x1b\\b", ["ab"]),
        (b"colour \x1b[3\nnext 2m", ["colour ", "next 2m"]),
        (b"title \x1b]0;never ended\nnext", ["title ", "next"]),
        (b"a\x1b\x1b[0mb", ["ab"]),
        (b"a\x1b\xc3\xa9", ["aé"]),
        (b"a\x1b[1\xc3\xa9", ["aé"]),
        (b"\x1b[0m", [""]),
        (b"\xe2\x96\x88\xff\xe2\x96", ["█��"]),
        (b"tab\tbell\x07", ["tab\tbell\x07"]),
    ],
)
def test_segments(data: bytes, expected: list[str]) -> None:
    assert segments_of(data) == expected


def test_a_segment_is_given_as_soon_as_it_ends() -> None:
    segments = Segments()
    assert segments.feed(b"bar 1\r") == ["bar 1"]
    assert segments.feed(b"\nline") == []
    assert segments.feed(b"\n") == ["line"]
    assert segments.finish() == []


def test_cut_at_every_position() -> None:
    whole = segments_of(MIXED)
    assert len(whole) == 7
    for cut in range(len(MIXED) + 1):
        assert fed(pieces(MIXED, [cut])) == whole
    assert fed(bytes([byte]) for byte in MIXED) == whole


def test_cut_at_every_pair_of_positions() -> None:
    short = b"a\r\n\x1b[1m\xe2\x96\x88\x1b]0;t\x1b\\b\r\xff"
    for first in range(len(short) + 1):
        for second in range(first, len(short) + 1):
            assert fed(pieces(short, [first, second])) == ["a", "█b", "�"]


@settings(deadline=None)
@given(log=LOGS, cuts=st.lists(st.integers(0, 200)), longest=st.integers(2, 12))
def test_segments_are_the_same_however_the_log_is_cut(log: bytes, cuts: list[int], longest: int) -> None:
    feeds = pieces(log, [cut for cut in cuts if cut <= len(log)])
    assert fed(feeds) == segments_of(log)
    assert fed(feeds, longest) == fed([log], longest)


@settings(deadline=None)
@given(log=LOGS, longest=st.integers(2, 12))
def test_only_segments_that_are_too_long_are_cut(log: bytes, longest: int) -> None:
    for whole, cut in zip(segments_of(log), fed([log], longest), strict=True):
        if len(whole) <= longest:
            assert cut == whole
        else:
            head, tail = whole[: longest - longest // 2], whole[len(whole) - longest // 2 :]
            assert cut == f"{head} [... {len(whole) - longest} characters left out ...] {tail}"


def test_an_endless_segment_needs_little_memory() -> None:
    segments = Segments()
    piece = b"\x1b[32m" + "█".encode() * 1000
    tracemalloc.start()
    for _ in range(8000):
        assert segments.feed(piece) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (text,) = segments.feed(b"end\n")
    assert text.startswith("█" * 1000)
    assert text.endswith("█end")
    assert f"{8_000_003 - 64 * 1024} characters left out" in text
    assert peak < 4_000_000
