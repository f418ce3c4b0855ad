"""What the server makes of packed histograms that hosts send: kept as they are, or refused in words."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webapp.results.bad_item import BadItem
from webapp.results.packed import check_packed
from worker.contract.histogram import Histogram
from worker.contract.packing import BadPacking, pack, unpack

counts = st.integers(min_value=1, max_value=2**48 - 1)
midpoints = st.integers(min_value=0, max_value=2**49 - 1)
histograms = st.dictionaries(midpoints, counts, max_size=300).map(
    lambda found: Histogram(latency_ns=tuple(sorted(found)), counts=tuple(found[each] for each in sorted(found)))
)
GOOD = pack(Histogram(latency_ns=(0, 5, 300, 595, 890), counts=(1, 200, 70_000, 3, 4)))


@given(st.lists(histograms, max_size=4))
def test_it_takes_what_a_worker_packs(found: list[Histogram]) -> None:
    check_packed(pack(each) for each in found)


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=3))
@example([b"\x01\x01\x00"])
@example([b"\x02\x00\x01\x05"])
@example([b"\x03\x01\x00\x00\x07", b"\x01\x00"])
def test_it_takes_what_can_be_unpacked_to_a_histogram_and_nothing_else(texts: list[bytes]) -> None:
    """Of any bytes: taken, if and only if each is read as a histogram, whose numbers are not longer than need be."""
    try:
        check_packed(texts)
    except BadItem:
        assert not all(map(_is_good, texts))
    else:
        assert all(map(_is_good, texts))


def _is_good(text: bytes) -> bool:
    try:
        unpack(text)
    except BadPacking:
        return False
    return all(len(number) <= 7 and (len(number) == 1 or number[-1] != 0) for number in _split(text))


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
        b"\x01\x01\x85", b"\x81\x00\x01\x05", b"\x01\x81\x00\x05", b"\x02\x01\x01\x05\x00", b"\x01\x01\x00",
        b"\x01\x01" + b"\xff" * 7 + b"\x01", b"\xff\xff\xff\x01\x01\x01", bytes(1000),
        b"\x81\x20\x01" + bytes(4096) + b"\x05", b"no histogram", GOOD[:-1], GOOD + b"x", GOOD + GOOD,
    ],
)  # fmt: skip
def test_it_refuses_one_bad_histogram_among_good_ones(text: bytes) -> None:
    """Breaks off, more or fewer buckets or steps than it says, not in order, too many of them, numbers out of range."""
    check_packed([GOOD, b"", GOOD])
    with pytest.raises(BadItem, match="histogram"):
        check_packed([GOOD, text, GOOD])
