"""The verdict of Bench, the states of ratios that it rests on, and the rows of the plot."""

from collections.abc import Sequence
from typing import Any

import pytest

from webapp.analysis.answer import BaselineRatio, Conclusion
from webapp.analysis.equals import BLOCK, DEPTH, JOBS
from webapp.analysis.findings.curves import Noise
from webapp.bench.answer import BenchAnswer
from webapp.bench.assembly import answer, short_names
from webapp.bench.forest import RatioState, Whisker, chosen, judgement, series_of
from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import read_selection, side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.bench.workloads import Workload
from webapp.core.statistics import Ratio
from webapp.tests.factories.hosts import a_drive
from webapp.tests.factories.results import Lab
from worker.contract.workload import KIB

STEADY = (1.0, 1.004, 0.996, 1.002)
DEPTHS = (1, 2, 4, 8, 16, 32, 64)


def measure(lab: Lab, speeds: Sequence[float], repeats: Sequence[float] = STEADY, **levels: Any) -> None:
    for depth, speed in zip(DEPTHS, speeds, strict=False):
        lab.measure(*(speed * each for each in repeats), iodepth=depth, **levels)


def answered(*models: str, **asked: Any) -> BenchAnswer:
    products = read_selection([f"model:{model}" for model in models], **asked)
    assert products
    return answer(side_by_side(products))


def states(made: BenchAnswer, product: str) -> list[RatioState | None]:
    rows = [made.rows[place] for place in made.forest[0].rows]
    return [cell.state for row in rows for cell in row.cells if cell.product == f"model:{product}"]


def test_the_faster_of_two_is_divided_by_the_slower_one(samsung: Lab, intel: Lab) -> None:
    measure(samsung, [200.0 * depth for depth in DEPTHS])
    measure(intel, [100.0 * depth for depth in DEPTHS])
    made = answered(SAMSUNG, INTEL)
    assert made.baseline == f"model:{INTEL}"
    assert made.verdict
    assert made.verdict.lead == f"{SAMSUNG}: 2.00× as fast in random reads at all 7 queue depths."
    assert (made.verdict.pills, made.verdict.repeats) == ((), "4 repeats")
    assert answered(INTEL, SAMSUNG).verdict == made.verdict
    assert answered(SAMSUNG, INTEL, baseline=f"model:{SAMSUNG}").verdict == made.verdict


def test_runs_are_compared_with_the_first_one(samsung: Lab) -> None:
    later = Lab(samsung.target, number=2)
    measure(samsung, [200.0])
    measure(later, [100.0])
    asked = read_selection(["run:1", "run:2"])
    assert asked
    assert side_by_side(asked).matched.baseline == Product(Kind.RUN, "1")


def test_equal_under_load_at_a_limit_that_both_share(samsung: Lab, intel: Lab) -> None:
    measure(samsung, [2000.0, 4000.0, 8000.0, 9990.0, 10000.0, 10000.0, 10000.0])
    measure(intel, [1000.0, 2000.0, 4000.0, 8000.0, 10000.0, 10000.0, 10000.0])
    verdict = answered(SAMSUNG, INTEL).verdict
    assert verdict
    assert verdict.lead == f"{SAMSUNG}: 2.00× as fast in random reads at queue depth 1,"
    assert verdict.rest == "equal from 16 on: both at the limit they share."
    assert verdict.line[0] == "Both stop at 10.0k IOPS."


def test_equal_without_a_common_limit_names_none(samsung: Lab, intel: Lab) -> None:
    """Both still rise at the end."""
    measure(samsung, [2000.0, 4000.0, 8000.0, 16000.0, 32000.0, 64000.0, 128000.0])
    measure(intel, [1000.0, 2000.0, 4000.0, 16000.0, 32000.0, 64000.0, 128000.0])
    verdict = answered(SAMSUNG, INTEL).verdict
    assert verdict
    assert verdict.rest == "equal from 8 on."
    assert verdict.line == ()


@pytest.mark.parametrize("pattern", ["randread", "randwrite"])
def test_products_that_change_places(samsung: Lab, intel: Lab, pattern: str) -> None:
    direction = "read" if pattern == "randread" else "write"
    measure(samsung, [300.0, 300.0, 300.0, 300.0], pattern=pattern, direction=direction)
    measure(intel, [100.0, 200.0, 400.0, 900.0], pattern=pattern, direction=direction)
    made = answered(SAMSUNG, INTEL)
    assert made.verdict
    noun = "reads" if direction == "read" else "writes"
    assert made.verdict.lead == f"{SAMSUNG}: 3.00× as fast in random {noun} at queue depth 1,"
    assert made.verdict.rest == f"{INTEL}: 3.00× at 8."


def test_each_pattern_names_the_product_that_is_better_in_it(samsung: Lab, intel: Lab) -> None:
    measure(samsung, [300.0, 600.0])
    measure(intel, [100.0, 200.0])
    measure(samsung, [100.0, 200.0], pattern="randwrite", direction="write")
    measure(intel, [250.0, 500.0], pattern="randwrite", direction="write")
    made = answered(SAMSUNG, INTEL)
    assert made.verdict
    assert made.verdict.lead == f"{SAMSUNG}: 3.00× as fast in random reads at both queue depths."
    assert made.verdict.line == (f"Random writes: {INTEL} 2.50× at both queue depths.",)


def test_of_many_changes_of_places_it_counts_them(samsung: Lab, intel: Lab) -> None:
    measure(samsung, [300.0, 100.0, 300.0, 100.0, 100.0])
    measure(intel, [100.0, 300.0, 100.0, 300.0, 300.0])
    verdict = answered(SAMSUNG, INTEL).verdict
    assert verdict
    assert verdict.lead == f"{INTEL}: faster at 3 and slower at 2 of 5 workloads in random reads."


def test_noise_leaves_no_verdict(samsung: Lab, intel: Lab) -> None:
    loud = (0.7, 1.3, 1.1, 0.8)
    measure(samsung, [100.0 * depth for depth in DEPTHS], loud)
    measure(intel, [104.0 * depth for depth in DEPTHS], loud[::-1])
    made = answered(SAMSUNG, INTEL)
    assert made.verdict
    assert made.verdict.lead.startswith("Unclear which is better in ")
    assert set(states(made, INTEL)) == {RatioState.UNCLEAR}


def test_almost_equal_values_without_a_claim_are_not_called_unclear(samsung: Lab, intel: Lab) -> None:
    for lab, factor in ((samsung, 1.0), (intel, 1.01)):
        for depth in DEPTHS:
            lab.measure(100.0 * depth * factor, iodepth=depth)
    made = answered(SAMSUNG, INTEL)
    assert made.verdict
    assert "showed a difference of at most 5 % in random reads" in made.verdict.lead


def test_values_measured_once_say_so_and_have_no_claim(samsung: Lab, intel: Lab) -> None:
    """Three points of each product cannot say how noisy they are."""
    measure(samsung, [100.0, 200.0, 400.0], (1.0,))
    measure(intel, [200.0, 400.0, 800.0], (1.0,))
    made = answered(SAMSUNG, INTEL)
    assert made.verdict
    assert (made.verdict.pills, made.verdict.repeats) == (("Measured once",), "")
    assert set(states(made, INTEL)) == {RatioState.ONCE}


def test_a_table_measured_once_has_its_own_noise(samsung: Lab, intel: Lab) -> None:
    """24 smooth points of each product: the noise is known, but single values support no claim."""
    for jobs in (1, 2, 4, 8):
        for place, depth in enumerate(DEPTHS):
            speed = 1000.0 * depth * jobs * (1 + 0.002 * (-1) ** place)
            samsung.measure(speed, iodepth=depth, numjobs=jobs)
            intel.measure(2 * speed, iodepth=depth, numjobs=jobs)
    made = answered(SAMSUNG, INTEL)
    assert set(states(made, INTEL)) == {RatioState.ONCE}
    cell = next(cell for cell in made.rows[0].cells if cell.product == f"model:{INTEL}")
    assert cell.whisker is Whisker.NOISE
    assert cell.whisker_low
    assert cell.whisker_high
    assert 1.7 < cell.whisker_low < 2.0 < cell.whisker_high < 2.3
    assert made.verdict
    assert made.verdict.lead == f"{INTEL}: 2.00× as fast in random reads at all 28 workloads, measured once."
    assert made.verdict.pills == ("Measured once",)
    assert (made.label_columns, len(made.grids)) == (("Queue depth", "Jobs"), 1)


def test_single_values_have_one_state_whatever_the_noise_of_the_table() -> None:
    noise = Noise(0.005, of_repeats=False, sigmas=4.5)  # the whisker is ±3.2 %
    for ratio in (2.0, 0.01, 1.0, 1.04):
        against = BaselineRatio(
            ratio=Ratio(ratio, None, None), conclusion=Conclusion.NONE, better=None, equal=False, p=1.0, n=1, text="",
            interval_text="",
        )  # fmt: skip
        assert judgement(against, noise, noise).state is RatioState.ONCE
        assert judgement(against, noise, None).state is RatioState.ONCE


def test_of_several_products_it_names_who_leads_where(samsung: Lab, intel: Lab) -> None:
    third = Lab(a_drive(samsung.target.host, "nvme2", model="THIRD", serial="T1"), number=3)
    measure(samsung, [100.0, 200.0, 400.0, 800.0])
    measure(intel, [300.0, 600.0, 400.0, 800.0])
    measure(third, [100.0, 200.0, 900.0, 1800.0])
    verdict = answered(SAMSUNG, INTEL, "THIRD").verdict
    assert verdict
    assert verdict.lead == f"Fastest in random reads: {INTEL} up to queue depth 2,"
    assert verdict.rest == "THIRD from 4 on."


def test_products_without_a_common_workload(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    intel.measure(100.0, iodepth=2)
    made = answered(SAMSUNG, INTEL)
    assert made.verdict
    assert made.verdict.lead.startswith("Nothing to compare:")
    assert (made.forest, made.loads) == ((), ())
    assert len(made.advice) == 1


def test_hosts_that_differ_weaken_the_verdict(samsung: Lab, intel: Lab) -> None:
    measure(samsung, [200.0, 400.0])
    measure(intel, [100.0, 200.0])
    one_host = answered(SAMSUNG, INTEL).verdict
    assert one_host
    assert one_host.pills == ()
    other = Lab(a_drive(None, "nvme0", model=INTEL, serial="I2"), number=4)
    measure(other, [100.0, 200.0])
    asked = read_selection(["run:1", "run:4"])
    assert asked
    verdict = answer(side_by_side(asked)).verdict
    assert verdict
    assert "Hosts differ" in verdict.pills


# ---- which workloads stand on the plot


def workload(**point: Any) -> Workload:
    return Workload(str(point), dict(point))


def test_one_varying_factor_keeps_all_its_levels() -> None:
    alike = [workload(block_size=4 * KIB, iodepth=depth, numjobs=jobs) for depth in DEPTHS for jobs in (1, 2, 4)]
    kept = chosen(alike)
    assert [one.point[DEPTH] for one in kept] == list(DEPTHS)
    assert {one.point[JOBS] for one in kept} == {1}
    assert series_of(kept, kept) == (DEPTH, [kept])


def test_of_many_block_sizes_three_stay_with_their_loads() -> None:
    sizes = [512 * 2**power for power in range(14)]
    alike = [workload(block_size=size, numjobs=jobs) for size in sizes for jobs in (1, 10, 40)]
    kept = [(one.point[BLOCK], one.point[JOBS]) for one in chosen(alike)]
    assert kept == [
        (4 * KIB, 1), (4 * KIB, 10), (4 * KIB, 40), (64 * KIB, 1), (64 * KIB, 40), (1024 * KIB, 1), (1024 * KIB, 40),
    ]  # fmt: skip
    axis, (series, *_) = series_of(chosen(alike), alike)
    assert (axis, [one.point[JOBS] for one in series]) == (JOBS, [1, 10, 40])


def test_numbers_of_labels_are_a_series() -> None:
    alike = [workload(block_size=4 * KIB, **{"label:fill": level}) for level in ("20 %", "80 %", "100 %")]
    assert series_of(alike, alike) == ("label:fill", [alike])
    engines = [workload(block_size=4 * KIB, ioengine=engine) for engine in ("psync", "io_uring")]
    assert series_of(engines, engines) == ("", [[engine] for engine in engines])


def test_names_of_one_family_are_told_apart() -> None:
    names = [f"VENDOR MODEL-WITH-A-LONG-NAME-{number}0A07" for number in range(8)]
    short = short_names(names)
    assert len({*short.values()}) == 8
    assert all(len(text) <= 21 for text in short.values())
    same = [f"VENDOR {number} MODEL WITH ONE LONG END" for number in range(1000, 1005)]
    assert [*short_names(same).values()] == same  # their middles differ, so they stay whole


# ---- rows at other levels and places


def test_a_sentence_names_its_rows_if_others_of_the_pattern_differ(samsung: Lab, intel: Lab) -> None:
    for engine, slower in (("io_uring", 100.0), ("psync", 400.0)):
        measure(samsung, [200.0 * depth for depth in DEPTHS[:3]], ioengine=engine)
        measure(intel, [slower * depth for depth in DEPTHS[:3]], ioengine=engine)
    made = answered(SAMSUNG, INTEL)
    assert made.verdict
    assert made.verdict.lead == f"{SAMSUNG}: 2.00× as fast in random reads (io_uring) at all 3 queue depths."
    assert made.verdict.line == (f"Random reads (psync): {INTEL} 2.00× at all 3 queue depths.",)


def test_rows_that_agree_have_one_sentence(samsung: Lab, intel: Lab) -> None:
    for engine, slower in (("io_uring", 100.0), ("psync", 50.0)):
        measure(samsung, [200.0, 400.0], ioengine=engine)
        measure(intel, [slower, slower * 2], ioengine=engine)
    verdict = answered(SAMSUNG, INTEL).verdict
    assert verdict
    assert verdict.lead == f"{SAMSUNG}: 2.00× to 4.00× as fast in random reads at all 4 workloads."


def test_runs_that_differ_at_one_target_are_not_called_equal(samsung: Lab, intel: Lab) -> None:
    later = Lab(samsung.target, number=3)
    for lab, factor in ((samsung, 1.0), (later, 0.5)):
        for target, speed in ((samsung.target, 1.0), (intel.target, factor)):
            measure(lab, [1000.0 * speed, 2000.0 * speed], target=target)
    asked = read_selection(["run:1", "run:3"])
    assert asked
    made = answer(side_by_side(asked))
    assert made.verdict
    assert made.verdict.lead == "Run 1: 2.00× as fast in random reads (target storage1/nvme1) at both queue depths."
    assert made.label_columns == ("Queue depth", "Target")
    assert [row.labels for row in made.rows] == [
        ("1", "storage1/nvme0"), ("1", "storage1/nvme1"), ("2", "storage1/nvme0"), ("2", "storage1/nvme1"),
    ]  # fmt: skip


def test_a_row_that_is_not_compared_is_not_counted(samsung: Lab, intel: Lab) -> None:
    measure(samsung, [200.0, 400.0])
    measure(intel, [200.0, 400.0])
    samsung.run.results.filter(trial__point__iodepth=1).update(iops=0, ios=0, bytes_per_s=0, bytes=0)
    verdict = answered(SAMSUNG, INTEL).verdict
    assert verdict
    assert verdict.lead.endswith("are equal within 5 % in random reads at queue depth 2.")


def test_who_leads_does_not_depend_on_the_baseline(samsung: Lab, intel: Lab) -> None:
    third = Lab(a_drive(samsung.target.host, "nvme2", model="THIRD", serial="T1"), number=3)
    noise = ((1, 1.012, 0.99), (0.992, 1.006, 1.01), (1.004, 0.99, 1.0))
    for lab, speed, repeats in zip((samsung, intel, third), (1000.0, 1080.0, 1075.0), noise, strict=True):
        measure(lab, [speed], repeats)
    leads = set()
    for baseline in (SAMSUNG, INTEL, "THIRD"):
        made = answered(SAMSUNG, INTEL, "THIRD", baseline=f"model:{baseline}")
        assert made.verdict
        leads.add((made.verdict.lead, made.verdict.rest))
    assert leads == {("No product leads in random reads.", "")}


def test_nobody_leads_if_one_product_was_measured_once(samsung: Lab, intel: Lab) -> None:
    third = Lab(a_drive(samsung.target.host, "nvme2", model="THIRD", serial="T1"), number=3)
    measure(samsung, [400.0])
    measure(intel, [200.0])
    measure(third, [100.0], (1.0,))
    made = answered(SAMSUNG, INTEL, "THIRD")
    assert made.verdict
    assert (made.verdict.lead, made.verdict.pills) == ("No product leads in random reads.", ("Partly measured once",))
