"""Any results judged by any others."""

import pytest

from webapp.analysis.comparing import comparison_of, select
from webapp.analysis.dimensions import MATCHED
from webapp.analysis.equals import OTHER_PLACES
from webapp.analysis.question import CompareQuery
from webapp.analysis.verdicts import ONE_VALUE_EACH, Outcome
from webapp.core.errors import Refusal
from webapp.imports.references.reading import load_references
from webapp.plans.values import Value
from webapp.results.metrics import Missing
from webapp.results.models import Import, Result, StreamRun
from webapp.results.reading.doubts import unfinished_sentences
from webapp.results.reading.filter import ResultFilter
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import Lab
from webapp.trends.tests.measuring import Nights
from webapp.trends.two_sides import TwoSides, judge_sides, read_side

FAST, SLOW = (1000.0, 1001.0, 1002.0, 999.0), (800.0, 801.0, 802.0, 799.0)


def judged(baseline: str, candidate: str, percent: float = 5.0) -> TwoSides:
    return judge_sides(baseline=baseline, candidate=candidate, tolerances={"iops": percent})


def code(baseline: str, candidate: str) -> str:
    with pytest.raises(Refusal) as refused:
        judged(baseline, candidate)
    return refused.value.code


def test_a_run_is_worse_not_worse_or_cannot_be_told(nights: Nights) -> None:
    nights.run(1000, 4000)
    nights.run(1000, 4000)
    nights.run(1000, 3000)
    nights.run(1000)
    nights.run(1000, 4000, spread=0.2)
    assert judged("run=1", "run=2").outcome is Outcome.PASSES
    worse = judged("run=1", "run=3")
    assert (worse.outcome, worse.new_cells, worse.baseline_results) == (Outcome.FAILS, 0, 6)
    assert judged("run=1", "run=3", percent=50).outcome is Outcome.PASSES
    assert judged("run=1", "run=4").outcome is Outcome.UNCLEAR
    assert judged("run=1", "run=5").outcome is Outcome.UNCLEAR


def test_a_run_is_judged_against_the_other_runs_of_its_target(nights: Nights) -> None:
    """Its own results are on both sides. Compared with itself, it would pass."""
    for speed in (1000, 1000, 1000, 800):
        nights.run(speed, spread=0.001)
    found = judged("target=a/scratch", "run=4")
    (row,) = found.rows
    assert row.outcome is Outcome.FAILS
    assert row.ratio
    assert row.ratio.value == pytest.approx(0.8, rel=0.01)
    assert (found.shared_results, found.baseline_results, found.candidate_results) == (3, 9, 3)
    found = judged("run=1", "target=a/scratch")
    assert (found.shared_results, found.baseline_results, found.candidate_results) == (3, 3, 9)


@pytest.mark.parametrize("candidate", ["run=1", "target=a/scratch", "run=1&host=a"])
def test_results_are_not_judged_against_themselves(nights: Nights, candidate: str) -> None:
    nights.run(1000, 4000)
    assert code("run=1", candidate) == "same_results"


def test_the_ratio_is_that_of_the_shown_values(nights: Nights) -> None:
    """Also if both sides have only some repeats or runs in common."""
    lab = nights.lab()
    lab.measure(*FAST, ioengine="io_uring")
    lab.measure(*SLOW, 600.0, ioengine="psync")
    for _ in range(2):
        (row,) = judged("factor.ioengine=io_uring", "factor.ioengine=psync").rows
        assert row.ratio
        assert row.baseline
        assert row.value
        assert row.ratio.value == pytest.approx(row.value / row.baseline)
        nights.lab().measure(*FAST, ioengine="psync")


def test_levels_of_a_factor_and_targets_are_judged_by_each_other(nights: Nights) -> None:
    lab = nights.lab()
    lab.measure(*FAST, ioengine="io_uring")
    lab.measure(*SLOW, ioengine="psync")
    lab.measure(*SLOW, ioengine="io_uring", target=a_target(nights.target.host, "other"))
    engines = judged("factor.ioengine=io_uring&target=a/scratch", "factor.ioengine=psync&target=a/scratch")
    assert engines.outcome is Outcome.FAILS
    assert [place.target for place in engines.places.values()] == [""]
    assert "ioengine" not in next(iter(engines.places.values())).point
    targets = judged("target=a/scratch&factor.ioengine=io_uring", "target=a/other&factor.ioengine=io_uring")
    assert targets.outcome is Outcome.FAILS


def test_several_targets_are_cells_of_their_own(nights: Nights) -> None:
    other = a_target(nights.target.host, "other")
    for number in (1, 2):
        lab = Lab(nights.target, version=nights.version, number=number)
        lab.measure(*FAST)
        lab.measure(*SLOW, target=other)
    found = judged("run=1", "run=2")
    assert found.outcome is Outcome.PASSES
    assert {place.target for place in found.places.values()} == {"a/scratch", "a/other"}


def test_filters_that_mix_different_results_are_refused(nights: Nights) -> None:
    lab = nights.lab()
    lab.measure(*FAST, ioengine="io_uring", iodepth=1)
    lab.measure(*SLOW, ioengine="io_uring", iodepth=2)
    assert code("factor.ioengine=io_uring&factor.iodepth=1,2", "factor.iodepth=1") == "results_mixed"


def test_different_tests_of_an_import_without_labels_are_at_one_target(db: None) -> None:
    for speed in (10_000, 5_000):
        an_import(title=f"hdparm {speed}", text=CACHED.format(speed), drive="", host="")
    rows = judge_sides(baseline="import=1", candidate="import=2", tolerances={"bytes_per_s": 5.0}, single_values=True)
    assert [row.outcome for row in rows.rows] == [Outcome.FAILS, Outcome.PASSES]


def test_a_row_never_means_over_different_points_of_several_runs(nights: Nights) -> None:
    nights.lab().measure(*FAST, iodepth=1)
    nights.lab().measure(*SLOW, iodepth=2)
    assert code("factor.iodepth=1,2", "factor.iodepth=1") == "results_mixed"


def test_ignored_factors_may_differ(nights: Nights) -> None:
    nights.lab().measure(*FAST, ioengine="io_uring")
    nights.lab().measure(*SLOW, ioengine="psync")
    (row,) = judged("run=1", "run=2").rows
    assert row.missing is Missing.NOT_MEASURED
    found = judge_sides(baseline="run=1", candidate="run=2", tolerances={"iops": 5.0}, ignored=["ioengine", "iodepth"])
    assert found.outcome is Outcome.FAILS
    assert found.ignored == ["ioengine", "iodepth"]
    with pytest.raises(Refusal, match="Did you mean `ioengine`"):
        judge_sides(baseline="run=1", candidate="run=2", tolerances={"iops": 5.0}, ignored=["ioengin"])


def test_factors_that_only_one_side_states_are_ignored_together(nights: Nights) -> None:
    """An import says nothing about fio's options. A queue depth that varies tells rows apart."""
    lab = nights.lab()
    lab.measure(*FAST, iodepth=1)
    lab.measure(*SLOW, iodepth=32)
    an_import()
    found = judge_sides(
        baseline="import=1&factor.pattern=randread", candidate="run=1", tolerances={"iops": 5.0},
        ignored=["unstated"], single_values=True,
    )  # fmt: skip
    assert [row.missing is Missing.NOT_MEASURED for row in found.rows] == [False, False]
    assert {"ioengine", "direct"} < set(found.ignored)
    assert "iodepth" not in found.ignored


def test_a_metric_of_whole_trials_is_judged_as_any_other(nights: Nights) -> None:
    """CPU per I/O is read for verdicts as for comparisons; a result without it has no value."""
    for percent in (50, 100):
        (first, *_) = nights.lab().measure(*FAST)
        StreamRun.objects.filter(attempt__run=first.run_id).update(usr_cpu_percent=percent, sys_cpu_percent=0)
    nights.lab().measure(*FAST)
    (row,) = judge_sides(baseline="run=1", candidate="run=2", tolerances={"cpu_per_io": 10.0}).rows
    assert row.ratio
    assert row.ratio.value == pytest.approx(2)
    (row,) = judge_sides(baseline="run=1", candidate="run=3", tolerances={"cpu_per_io": 10.0}).rows
    assert (row.outcome, row.missing) == (Outcome.UNCLEAR, Missing.NO_VALUE)
    with pytest.raises(Refusal, match="power"):
        judge_sides(baseline="run=1", candidate="run=2", tolerances={"speed": 10.0})


def iozone(candidate: str, *, single_values: bool = True) -> dict[tuple[Value, Value], tuple[str, str]]:
    """The published system of the streaming server's vendor against a candidate: outcome and reason of rows."""
    load_references()
    numbers = dict(Import.objects.values_list("slug", "number"))
    found = judge_sides(
        baseline=f"import={numbers['supermicro-arc1260']}",
        candidate=f"import={numbers['dell-pe2970-perc5i']}&{candidate}",
        tolerances={"bytes_per_s": 5.0},
        single_values=single_values,
    )
    points = [(found.places[row.cell[0]].point, row) for row in found.rows if row.cell]
    return {(point["numjobs"], point["test"]): (row.outcome, row.why) for point, row in points}


def test_a_published_system_passes_or_fails_row_by_row_against_another(db: None) -> None:
    """The Dell server writes faster and reads slower than the accepted one; after read-ahead was set, it reads faster,
    and the only row that is slower is the first write with 2 threads."""
    default = iozone("factor.read_ahead_sectors=not set")
    fails = {(jobs, test) for (jobs, test), (outcome, _) in default.items() if outcome == "fails"}
    assert fails == {(jobs, test) for jobs in (1, 2, 10) for test in ("Read", "Re-read")}
    assert {why for _, why in default.values()} == {ONE_VALUE_EACH}
    assert len(default) == 12
    tuned = iozone("factor.read_ahead_sectors=8192")
    assert {key for key, (outcome, _) in tuned.items() if outcome == "fails"} == {(2, "Initial write")}
    assert {key for key, (_, why) in tuned.items() if why == Missing.NOT_MEASURED} == {
        (1, test) for test in ("Initial write", "Rewrite", "Read", "Re-read")
    }


IMPORTS = (
    ("fusionio-duo-320gb", "tachion-400gb", 9, 0),  # drives, which a label tells apart
    ("eva4400-fata", "lsi9266-vertex4-sdb", 3, 0),  # one of them does not state the size
    ("lsi9266-vertex4-bonnie", "mtron-raid0-12", 0, 8),  # several layouts at eight points
    ("mtron-raid0-12", "mtron-raid5-4", 80, 0),
)


def test_a_verdict_about_two_imports_compares_the_cells_that_explore_compares(db: None) -> None:
    load_references()
    numbers = dict(Import.objects.values_list("slug", "number"))
    for *slugs, compared, mixed in IMPORTS:
        baseline, candidate = (numbers[slug] for slug in slugs)
        found = judge_sides(
            baseline=f"import={baseline}", candidate=f"import={candidate}", tolerances={"bytes_per_s": 5.0},
            single_values=True,
        )  # fmt: skip
        query = CompareQuery(
            x=MATCHED, series=("imported",), panel="direction", metric="bytes_per_s", baseline=str(baseline),
            results=ResultFilter(imports=(baseline, candidate)),
        )  # fmt: skip
        explored = [
            (panel.key, round(cell.against_baseline.ratio.value, 9))
            for panel in comparison_of(select(query)).panels
            for series in panel.series
            for cell in series.cells
            if cell.against_baseline
        ]
        assert sorted((row.direction, round(row.ratio.value, 9)) for row in found.rows if row.ratio) == sorted(explored)
        assert (len(explored), sum(bool(row.mixes) for row in found.rows)) == (compared, mixed)


def test_a_cell_of_several_drives_has_no_value_and_the_others_are_judged(db: None) -> None:
    old = an_import(text="pattern,block_size,iops\nrandread,4k,1000\nrandread,4k,900\nrandread,8k,500\n")
    old.origins.filter(number=2).update(drive="Other")
    an_import(title="New", text="pattern,block_size,iops\nrandread,4k,1000\nrandread,8k,400\n")
    found = judge_sides(baseline="import=1", candidate="import=2", tolerances={"iops": 5.0}, single_values=True)
    assert [(row.outcome, row.mixes, row.baseline, row.value) for row in found.rows] == [
        (Outcome.FAILS, (), 500, 400),
        (Outcome.UNCLEAR, ["model"], None, 1000),
    ]
    assert code("import=1&factor.block_size=4k", "import=2") == "results_mixed"


def test_two_hosts_are_compared_only_with_the_same_drives(nights: Nights) -> None:
    for place, (host, model) in enumerate((("b", "S4510"), ("c", "S4510"), ("d", "Other")), 1):
        target = a_target(a_host(host), "scratch", model=model)
        Lab(target, version=nights.version, number=place).measure(*FAST)
    assert judged("host=b", "host=c").outcome is Outcome.PASSES
    (row,) = judged("host=b", "host=d").rows
    assert (row.outcome, row.why) == (Outcome.UNCLEAR, OTHER_PLACES)
    assert judged("run=1", "run=3").outcome is Outcome.PASSES


def test_levels_that_both_filters_name_are_cells_of_their_own(nights: Nights) -> None:
    for speeds in (FAST, SLOW):
        lab = nights.lab()
        lab.measure(*speeds, iodepth=1)
        lab.measure(*speeds, iodepth=2)
        lab.measure(*SLOW, iodepth=4)
    found = judged("run=1&factor.iodepth=1,2", "run=2&factor.iodepth=1,2")
    assert [found.places[row.cell[0]].point["iodepth"] for row in found.rows if row.cell] == [1, 2]


def test_nothing_is_claimed_from_single_values_unasked(db: None) -> None:
    assert {outcome for outcome, _ in iozone("factor.read_ahead_sectors=not set", single_values=False).values()} == {
        "unclear"
    }


def test_runs_that_are_open_unknown_or_empty_are_refused(nights: Nights) -> None:
    nights.run(1000)
    Run.objects.filter(pk=nights.run(1000).pk).update(state=RunState.RUNNING)
    assert code("run=1", "run=2") == "run_open"
    assert code("run=1", "run=9") == "run_unknown"
    assert code("", "run=1") == "filter_missing"
    Result.objects.all().delete()
    assert code("run=1", "run=1") == "no_results"


CACHED = """/dev/sda:
 Timing cached reads:   {0}.00 MB in  2.00 seconds = {0}.00 MB/sec
 Timing buffered disk reads: 1500 MB in  3.00 seconds = 500.00 MB/sec
"""


def test_tests_of_an_import_with_equal_factors_are_cells_of_their_own(nights: Nights) -> None:
    """hdparm's cached reads measure memory. Their mean with the disk reads is the speed of nothing."""
    for speed in (10_000, 5_000):
        an_import(title=f"hdparm {speed}", text=CACHED.format(speed))
    rows = judge_sides(baseline="import=1", candidate="import=2", tolerances={"bytes_per_s": 5.0})
    values = {rows.places[row.cell[0]].point["test"]: (row.baseline, row.value) for row in rows.rows if row.cell}
    assert values["disk reads"] == pytest.approx((500 * 1024**2, 500 * 1024**2))
    assert values["cached reads"] == pytest.approx((10_000 * 1024**2, 5_000 * 1024**2))


def test_a_verdict_names_cancelled_runs_and_what_all_rows_share(nights: Nights) -> None:
    nights.run(1000, 4000)
    nights.run(1000, 4000)
    assert not judged("run=1", "run=2").unfinished
    Run.objects.filter(number=2).update(state=RunState.CANCELLED)
    verdict = judged("run=1", "run=2")
    assert list(verdict.unfinished) == list(unfinished_sentences(read_side("candidate", "run=2").rows))
    assert set(verdict.unfinished) <= set(verdict.limits)
    assert "4 KiB" in verdict.same or "randread" in verdict.same
