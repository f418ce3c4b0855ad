"""Tables of articles that were entered by hand: every value, or the ratios that the article prints."""

import pytest

from webapp.imports.references.tests.library import GIB, KIB, LIBRARY, MIB, entries_of, entry_of, rate, values_of
from webapp.plans.factors import FACTORS
from worker.contract.items import Direction

THREADS = (1, 2, 4, 8, 16, 32)


def test_throughput_of_intel_320_gives_the_printed_ratios() -> None:
    printed = {  # device -> ratio to RAID 10
        "single": (8.07, 7.91, 7.86, 7.54, 6.54, 5.31),
        "RAID 0 × 2": (8.31, 8.67, 9.33, 10.06, 10.40, 10.69),
    }
    slug = "intel-320-random-read"
    for layout, ratios in printed.items():
        for threads, ratio in zip(THREADS, ratios, strict=True):
            ours = entry_of(entries_of(slug, layout=layout), Direction.READ, numjobs=threads)
            raid = entry_of(entries_of(slug, layout="RAID 10 × 8"), Direction.READ, numjobs=threads)
            assert rate(ours) / rate(raid) == pytest.approx(ratio, abs=0.011)


def test_response_times_of_intel_320_give_the_printed_ratios() -> None:
    printed = {
        "single": (11.57, 10.10, 11.31, 12.60, 14.50, 14.22),
        "RAID 0 × 2": (10.95, 12.32, 13.61, 16.45, 18.49, 22.02),
    }
    slug = "intel-320-random-read"
    for layout, ratios in printed.items():
        for threads, ratio in zip(THREADS, ratios, strict=True):
            ours = entry_of(entries_of(slug, layout=layout), Direction.READ, numjobs=threads)
            raid = entry_of(entries_of(slug, layout="RAID 10 × 8"), Direction.READ, numjobs=threads)
            quotient = raid.measurement.latency.percentiles[95] / ours.measurement.latency.percentiles[95]
            assert quotient == pytest.approx(ratio, abs=0.011)
    first = entry_of(entries_of(slug, layout="single"), Direction.READ, numjobs=1)
    assert rate(first) == 30.27 * MIB
    assert first.measurement.latency.percentiles == {95: pytest.approx(530_000)}


def test_fill_levels_give_the_printed_advantages() -> None:
    path = "Duo 320GB and tachIOn 400GB by utilisation"
    pairs = zip(entries_of("fusionio-duo-320gb", path), entries_of("tachion-400gb", path), strict=True)
    advantages = []
    for duo, tachion in pairs:
        assert duo.labels["fill level"] == tachion.labels["fill level"]
        advantages.append(round(100 * rate(tachion) / rate(duo)))
    printed = (90, 97, 117, 142, 197, 217, 258, 429, 421)
    for ours, theirs in zip(advantages, printed, strict=True):
        assert abs(ours - theirs) <= 1
    thirds = values_of(entries_of("tachion-400gb", "For the 400GB tachIOn card"), MIB)
    assert thirds == [959.17, 849.58, 685.18, 417.33]
    assert [round(thirds[0] / value, 2) for value in thirds[1:]] == [1.13, 1.40, 2.30]  # the page prints 2.29
    sizes = entries_of("fusionio-duo-320gb", "Free space and write performance")
    assert values_of(sizes, MIB) == [933.60, 613.48, 354.37]
    assert [one.measurement.factors["size"] for one in sizes] == [100 * GIB, 150 * GIB, 200 * GIB]


OES = {
    ("100M", 20): "12727.29193 11469.85657 17299.73822 15487.54584 17340.01892 16405.58679 17039.8241 10984.80847 "
    "7289.342926",
    ("100M", 40): "12282.03964 10892.61572 11653.8652 13218.80331 2226.158993 1200.556759 1671.739376 6207.907829 "
    "6792.321884",
    ("200M", 20): "12348.50116 11036.0224 12590.91534 11825.04736 1603.999649 1507.770897 1749.024651 6852.934509 "
    "6894.767334",
}


def test_every_value_of_the_working_sets() -> None:
    entries = LIBRARY["oes-working-sets"].entries
    for (size, threads), row in OES.items():
        wanted = {"size": FACTORS["size"].values.parse(size), "numjobs": threads}
        found = [one for one in entries if wanted.items() <= one.measurement.factors.items()]
        assert [rate(one) for one in found] == [float(value) * 1024 for value in row.split()]
    mixed = [one.measurement.name for one in entries if one.measurement.direction is None]
    assert mixed == ["Mixed workload"] * 3
    reads = {one.measurement.name for one in entries if one.measurement.direction is Direction.READ}
    assert reads == {"Read", "Re-read", "Reverse read", "Stride read", "Random read"}


def test_every_value_of_the_nine_clients() -> None:
    printed = [11058.47, 11457.83, 5896.23, 5844.52, 6395.33, 5988.33, 6761.84, 8713.86, 7279.35]
    assert [rate(one) for one in LIBRARY["oes-nine-clients"].entries] == [value * 1024 for value in printed]


def test_every_value_of_the_eva() -> None:
    by_size = entries_of("eva4400-fata", "EVA4400 testing")
    assert values_of(by_size[:-1], KIB) == [79065, 52107, 46427, 3721, 1633538]
    assert [one.measurement.factors["size"] for one in by_size] == [100 * GIB] * 4 + [512 * MIB, 10 * GIB]
    streams = entries_of("eva4400-fata", "EVA4400 + FATA")
    assert values_of([one for one in streams if one.measurement.bytes_per_s], MIB) == [
        130,
        174,
        113,
        133,
        28,
        15,
        11,
        11,
    ]
    assert [dict(one.measurement.metrics) for one in [*streams, by_size[-1]] if one.measurement.metrics] == [
        {"stream_1_of_single_percent": 67, "stream_2_of_single_percent": 75},
        {"stream_1_of_single_percent": 90, "stream_2_of_single_percent": 115},
        {"gain_percent": 25},
        {"gain_percent": 37},
        {"controller_cpu_low_percent": 15, "controller_cpu_high_percent": 20},
    ]


def test_every_value_of_random_writes_of_intel_320() -> None:
    entries = entries_of("intel-320-random-write", "Throughput by file size")
    assert values_of(entries, MIB) == [100, 40, 30, 20, 15, 23]
    sizes = [one.measurement.factors.get("size") for one in entries]
    assert sizes == [10 * GIB, 70 * GIB, 100 * GIB, 120 * GIB, 140 * GIB, None]


def test_figures_of_texts_are_rounded_and_have_their_words() -> None:
    below, about = entries_of("intel-320-random-write", "Second iteration")
    assert values_of([below, about], MIB) == [40, 50]
    assert "below 40 MiB/s from just after 50 GiB" in below.measurement.notes[0]
    assert about.measurement.metrics == {"least_mib_per_s": 40}
    assert about.labels["partition"] == "120 GB"
    peak, full = LIBRARY["fusionio-320gb-mlc"].entries
    assert values_of([peak, full], MIB) == [500, (110 + 120) / 2]
    assert full.measurement.metrics == {"low_mib_per_s": 110, "high_mib_per_s": 120}
    assert "110-120 MiB/s" in full.measurement.notes[0]


def test_a_preference_of_the_authors_is_no_factor() -> None:
    entries = LIBRARY["x25-m-lvm-stripe"].entries
    assert not any("scheduler" in one.measurement.factors or "file system" in one.labels for one in entries)
    assert {one.labels["preferred for benchmarks"] for one in entries} == {"XFS, deadline scheduler"}


def test_power_and_temperature_have_no_direction_and_no_pattern() -> None:
    entries = LIBRARY["supermicro-2026tt-power"].entries
    assert [one.measurement.metrics for one in entries] == [
        *({"power_watt": watt} for watt in (30, 210, 347, 499, 647)),
        {"ambient_celsius": 27, "chassis_celsius": 53},
    ]
    assert all(one.measurement.direction is None and not one.measurement.factors for one in entries)


def test_times_are_seconds() -> None:
    old, new = entries_of("m4n-database", "Nightly maintenance queries")
    assert old.measurement.metrics == {"real_s": 348 * 60 + 6.451, "user_s": 4.912, "sys_s": 0.808}
    assert new.measurement.metrics == {"real_s": 30 * 60 + 34.747, "user_s": 2.752, "sys_s": 1.008}
    (copy,) = entries_of("x25-m-lvm-stripe", "sequential: cp")
    assert copy.measurement.metrics == {"real_s": 60 + 8.972, "user_s": 0.468, "sys_s": 13.049}
    assert copy.measurement.factors["size"] == 17179869184
    ratios = [one.measurement.metrics for one in entries_of("m4n-database", "Speed of the application")]
    assert ratios == [{"speed_ratio": 6}, {"speed_ratio": 2}]


def test_transactions_give_the_printed_advantages() -> None:
    entries = LIBRARY["mysql-tachion"].entries
    values = [one.measurement.metrics["new_orders_per_min"] for one in entries]
    assert values == [23513, 30436, 71774, 88792, 78091, 109631]
    assert [round(ours / theirs, 1) for theirs, ours in zip(values[::2], values[1::2], strict=True)] == [1.3, 1.2, 1.4]
