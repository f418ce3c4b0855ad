from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.plans.factors import FACTORS, ValueRefused, by_cost, closest
from webapp.plans.levels import MAX_LEVELS, LevelError, parse
from worker.contract.workload import FioWorkload

KIB, MIB = 1024, 1024**2


def levels(factor: str, text: str) -> tuple[object, ...]:
    return parse(FACTORS[factor], text)


@pytest.mark.parametrize(
    ("factor", "text", "expected"),
    [
        ("block_size", "4k", (4096,)),
        ("block_size", "512, 4 KiB, 1M", (512, 4096, MIB)),
        ("block_size", "512..4M *2", tuple(512 * 2**n for n in range(14))),
        ("block_size", "512..4k *2, 1M", (512, 1024, 2048, 4096, MIB)),
        ("block_size", "4k..16k +4k", (4096, 8192, 12288, 16384)),
        ("block_size", "1.5k..7k *2", (1536, 3072, 6144)),
        ("iodepth", "1..64 *2", (1, 2, 4, 8, 16, 32, 64)),
        ("iodepth", "1..100 *10", (1, 10, 100)),
        ("iodepth", "1..50 *4", (1, 4, 16)),
        ("read_percent", "10..100 +10", tuple(range(10, 101, 10))),
        ("read_percent", "90 %", (90,)),
        ("numjobs", "1,10,40", (1, 10, 40)),
        ("numjobs", "1, 1, 2", (1, 2)),
        ("runtime", "3s, 10m, 1h", (3, 600, 3600)),
        ("size", "whole", (None,)),
        ("ioengine", "io_uring, psync", ("io_uring", "psync")),
        ("direct", "on, off", (True, False)),
        ("scheduler", "none, mq-deadline", ("none", "mq-deadline")),
        ("read_ahead_kb", "128..1024 *2", ("128", "256", "512", "1024")),
        ("wbt_lat_usec", "-1, 0", ("-1", "0")),
        ("block_split", "4096/60:8K/40", ("4k/60:8k/40",)),
    ],
)
def test_it_reads_levels_as_typed(factor: str, text: str, expected: tuple[object, ...]) -> None:
    assert levels(factor, text) == expected


@pytest.mark.parametrize(
    ("factor", "text", "words"),
    [
        ("block_size", "512..1k..2k *2", "not understood"),
        ("block_size", "", "a level is missing between two commas"),
        ("block_size", "4k,,8k", "a level is missing between two commas"),
        ("size", "1000", "not a multiple of 512 B"),
        ("block_size", "32M", "outside 1 B to 16 MiB"),
        ("block_size", "4 kilo", "write it like"),
        ("iodepth", "1..64", "write `1..64 *2` to double or `1..64 +1` to add"),
        ("block_size", "512..4M", "`512..4M +512` to add"),  # what it says to write can be written
        ("read_percent", "0..100", "`0..100 +1` to add"),
        ("size", "512..4M +1", "the step `+1` does not fit, 1 B is outside"),
        ("iodepth", "64..1 *2", "ends below its start"),
        ("iodepth", "1..64 *1", "of at least 2"),
        ("iodepth", "1..4096 +1", f"more than {MAX_LEVELS} levels"),
        ("fsync_every", "0..8 *2", "start above 0"),
        ("ioengine", "a..b *2", "has names, not numbers"),
        ("ioengine", "posixaio", "not one of io_uring, libaio, psync"),
        ("direct", "maybe", "neither on nor off"),
        ("scheduler", "none; reboot", "not understood"),
        ("read_ahead_kb", "lots", "not understood"),
        ("block_split", "4k/60:8k/30", "add up to 90 %"),
        ("size", "whole..2M *2", "cannot be the end of a range"),
        ("numjobs", "１", "not a whole number"),
    ],
)
def test_it_explains_invalid_levels(factor: str, text: str, words: str) -> None:
    with pytest.raises(LevelError) as caught:
        levels(factor, text)
    assert words in str(caught.value)
    assert str(caught.value).startswith(FACTORS[factor].label)


@pytest.mark.parametrize(
    ("factor", "value", "shown"),
    [
        ("block_size", 4096, "4 KiB"),
        ("block_size", 512, "512 B"),
        ("block_size", MIB, "1 MiB"),
        ("block_size", 1536, "1536 B"),
        ("size", None, "whole device"),
        ("runtime", 90, "90 s"),
        ("runtime", 600, "10 min"),
        ("fsync_every", 4, "4 writes"),
        ("direct", False, "off"),
        ("read_ahead_kb", "128", "128 KiB"),
        ("block_split", "4k/60:8k/40", "60 % 4 KiB, 40 % 8 KiB"),
        ("pattern", "randread", "randread"),
    ],
)
def test_it_shows_values_with_their_unit(factor: str, value: object, shown: str) -> None:
    assert FACTORS[factor].format(value) == shown


@given(st.sampled_from(sorted(FACTORS)), st.text(max_size=60))
def test_every_error_has_a_message(factor: str, text: str) -> None:
    try:
        found = levels(factor, text)
    except LevelError:
        return
    assert 1 <= len(found) <= MAX_LEVELS
    assert len(set(map(repr, found))) == len(found)


@given(st.sampled_from(sorted(FACTORS)), st.text(alphabet="0123456789kMs.*+, -%/:abenof", max_size=40))
def test_it_reads_back_what_it_writes(factor: str, text: str) -> None:
    known = FACTORS[factor]
    try:
        found = parse(known, text)
    except LevelError:
        return
    assert tuple(known.values.parse(known.values.write(value)) for value in found) == found


@given(st.integers(1, 2**15), st.integers(2, 9))
def test_a_geometric_range_multiplies_and_stays_within_its_end(blocks: int, by: int) -> None:
    found = [int(str(v)) for v in levels("block_size", f"512..{blocks * 512} *{by}")]
    assert all(b == a * by for a, b in pairwise(found))
    assert found[-1] <= blocks * 512 < found[-1] * by


def test_every_factor_of_the_workload_reads_its_default_back() -> None:
    for factor in FACTORS.values():
        if factor.default is not None:
            assert factor.values.parse(factor.values.write(factor.default)) == factor.default


def test_defaults_are_those_of_the_contract() -> None:
    contract = FioWorkload(pattern="randread")  # type: ignore[arg-type]
    for name in ("ioengine", "numjobs", "iodepth", "sync_depth", "direct", "sync", "fsync_every", "prefill", "buffers"):
        assert FACTORS[name].default == getattr(contract, name)
    assert FACTORS["block_size"].default == contract.block_bytes


def test_the_scheduler_changes_slowest_and_settings_before_the_workload() -> None:
    ordered = by_cost(["iodepth", "size", "read_ahead_kb", "scheduler", "pattern", "zzz"])
    assert ordered == ("scheduler", "read_ahead_kb", "size", "pattern", "iodepth", "zzz")


def test_it_guesses_the_factor_that_was_meant() -> None:
    assert closest("blocksize") == "block_size"
    assert closest("colour") == ""


def test_a_value_that_is_refused_is_a_value_error() -> None:
    with pytest.raises(ValueRefused):
        FACTORS["numjobs"].values.parse("0")
