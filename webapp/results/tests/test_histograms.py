"""Packed histograms that hosts send: stored as they are, or refused in words."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webapp.results.ingest.parse import BadItem
from webapp.results.ingest.report import check_histogram
from worker.contract.packing import BadPacking, Histogram, pack, unpack

counts = st.integers(min_value=1, max_value=2**48 - 1)
midpoints = st.integers(min_value=0, max_value=2**49 - 1)
histograms = st.dictionaries(midpoints, counts, max_size=300).map(
    lambda found: Histogram(latency_ns=tuple(sorted(found)), counts=tuple(found[each] for each in sorted(found)))
)
GOOD = pack(Histogram(latency_ns=(0, 5, 300, 595, 890), counts=(1, 200, 70_000, 3, 4)))


@given(st.lists(histograms, max_size=4))
def test_it_takes_what_a_worker_packs(found: list[Histogram]) -> None:
    for each in found:
        check_histogram(pack(each))


@given(st.binary(max_size=12))
@example(b"\x01\x01\x00")
@example(b"\x02\x00\x01\x05")
@example(b"\x03\x01\x00\x00\x07")
def test_it_takes_what_can_be_unpacked_to_a_histogram_and_nothing_else(text: bytes) -> None:
    """Of any bytes: taken, if and only if they are read as a histogram, none of whose numbers is too long."""
    try:
        check_histogram(text)
    except BadItem:
        assert not _is_good(text)
    else:
        assert _is_good(text)


def _is_good(text: bytes) -> bool:
    try:
        unpack(text)
    except BadPacking:
        return False
    return all(len(number) <= 7 for number in _split(text))


def _split(text: bytes) -> list[bytes]:
    found, begin = [], 0
    for place, byte in enumerate(text):
        if byte < 0x80:
            found.append(text[begin : place + 1])
            begin = place + 1
    return found


@pytest.mark.parametrize(
    "text",
    [
        b"\0", b"\x01", b"\0\0", b"\x02\x01\x05", b"\x02\x00\x00", b"\x02\x01\x01\x05", b"\x01\x01\x05\x05",
        b"\x01\x01\x85", b"\x02\x01\x01\x05\x00",
        b"\x01\x01" + b"\xff" * 7 + b"\x01", b"\xff\xff\xff\x01\x01\x01", bytes(1000),
        b"\x81\x20\x01" + bytes(4096) + b"\x05", b"no histogram", GOOD[:-1], GOOD + b"x", GOOD + GOOD,
    ],
)  # fmt: skip
def test_it_refuses_a_bad_histogram(text: bytes) -> None:
    """Breaks off, more or fewer buckets or steps than it says, not in order, too many of them, numbers out of range."""
    check_histogram(GOOD)
    check_histogram(b"")
    with pytest.raises(BadItem, match="histogram"):
        check_histogram(text)
