"""Histograms survive being packed, and pack small."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.contract.histogram import Histogram
from worker.contract.packing import BadPacking, pack, unpack

counts = st.integers(min_value=0, max_value=2**63 - 1)
buckets = st.dictionaries(counts, counts, max_size=300)


@given(buckets)
def test_it_gives_back_what_was_packed(found: dict[int, int]) -> None:
    ordered = sorted(found)
    histogram = Histogram(latency_ns=tuple(ordered), counts=tuple(found[latency] for latency in ordered))
    assert unpack(pack(histogram)) == histogram


def test_it_packs_a_usual_second_small() -> None:
    latencies = tuple(10_000 + 640 * n for n in range(250))
    histogram = Histogram(latency_ns=latencies, counts=tuple((n * 37) % 900 + 1 for n in range(250)))
    assert len(pack(histogram)) < 700
    assert unpack(memoryview(pack(histogram))) == histogram


@pytest.mark.parametrize(
    "data", [b"no zlib", zlib.compress(b""), zlib.compress(b"\x02\x01\x01"), zlib.compress(b"\x81")]
)
def test_it_says_when_bytes_are_none_of_ours(data: bytes) -> None:
    with pytest.raises(BadPacking):
        unpack(data)
