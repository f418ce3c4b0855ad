"""Histograms survive being packed, and pack small."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.contract.packing import BadPacking, Histogram, pack, unpack

latencies = st.integers(min_value=0, max_value=2**63 - 1)
buckets = st.dictionaries(latencies, st.integers(min_value=1, max_value=2**63 - 1), max_size=300)


@given(buckets)
def test_it_gives_back_what_was_packed(found: dict[int, int]) -> None:
    ordered = sorted(found)
    histogram = Histogram(latency_ns=tuple(ordered), counts=tuple(found[latency] for latency in ordered))
    assert unpack(pack(histogram)) == histogram


def test_it_packs_a_usual_second_small() -> None:
    latencies = tuple(10_000 + 640 * n for n in range(250))
    histogram = Histogram(latency_ns=latencies, counts=tuple((n * 37) % 60 + 1 for n in range(250)))
    assert len(pack(histogram)) < 260
    assert unpack(memoryview(pack(histogram))) == histogram


def test_an_empty_bucket_is_not_packed() -> None:
    with pytest.raises(ValueError, match="empty bucket"):
        pack(Histogram(latency_ns=(1, 2), counts=(3, 0)))


@pytest.mark.parametrize(
    "data", [b"no histogram", b"\0", b"\x02\x01\x05", b"\x02\x00\x00", b"\x01\x01\x85", b"\x01\x01\x05\x05"]
)
def test_it_says_when_bytes_are_none_of_ours(data: bytes) -> None:
    with pytest.raises(BadPacking):
        unpack(data)
