"""What the server makes of packed histograms that hosts send: kept as they are, or refused in words."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.results.bad_item import BadItem
from webapp.results.packed import check_packed
from worker.contract.histogram import Histogram
from worker.contract.packing import MOST_BYTES, pack, unpack

counts = st.integers(min_value=1, max_value=2**49 - 1)
midpoints = st.integers(min_value=0, max_value=2**49 - 1)
histograms = st.dictionaries(midpoints, counts, max_size=300).map(
    lambda found: Histogram(latency_ns=tuple(sorted(found)), counts=tuple(found[each] for each in sorted(found)))
)
GOOD = pack(Histogram(latency_ns=(0, 5, 300), counts=(1, 200, 70_000)))


@given(st.lists(histograms, max_size=4))
def test_it_takes_what_a_worker_packs(found: list[Histogram]) -> None:
    check_packed(pack(each) for each in found)


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=3))
def test_it_takes_nothing_that_is_no_histogram(texts: list[bytes]) -> None:
    """Of any bytes: what is taken is unpacked to a histogram, and packing that again gives the same bytes."""
    sent = [zlib.compress(text, 1) for text in texts]
    try:
        check_packed(sent)
    except BadItem:
        return
    for packed in sent:
        found = unpack(packed)
        assert pack(found) == packed
        assert min(found.counts) > 0


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\0", b"\0\0\0", b"\x02\x01\x01", b"\x01\x01\x01\x01", b"\x01\x01\x81", b"\x81\x00\x01\x01",
        b"\x02\x05\x01\x00\x01", b"\x01\x05\x00", b"\x01\x05\x80\x00", b"\x01\x80\x00\x01",
        b"\x01" + b"\xff" * 7 + b"\x01\x01", b"\xff\xff\xff\x01\x01\x01", b"\x00" * (MOST_BYTES + 1), bytes(10**7),
    ],
)  # fmt: skip
def test_it_refuses_one_bad_histogram_among_good_ones(raw: bytes) -> None:
    """Breaks off, more or fewer buckets than it says, not in order, empty buckets, numbers too large, too long."""
    with pytest.raises(BadItem, match="histogram"):
        check_packed([GOOD, zlib.compress(raw), GOOD])


@pytest.mark.parametrize("packed", [b"no zlib", GOOD[:-1], GOOD + b"x", zlib.compress(b"\x01\x01\x01")[:4]])
def test_it_refuses_what_is_not_compressed_as_it_should_be(packed: bytes) -> None:
    with pytest.raises(BadItem, match="cannot be unpacked"):
        check_packed([GOOD, packed])
