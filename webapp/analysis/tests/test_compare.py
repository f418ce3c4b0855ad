import math
from itertools import product
from statistics import stdev

import msgspec
import pytest
import scipy
from pytest_django import DjangoAssertNumQueries

from webapp.analysis.answer import Comparison, comparison_table
from webapp.analysis.comparing import compare, comparison_of, select
from webapp.analysis.dimensions import JOINER, joined
from webapp.analysis.question import CompareQuery, CompareRefused, read_query
from webapp.analysis.tests.measuring import ENGINES, measure_engines
from webapp.results.models import Result
from webapp.results.reading.filter import FilterRefused
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.results import FACTS, Lab
from webapp.tests.refusals import refuses
from worker.contract.packing import LAST_BUCKET_NS

pytestmark = pytest.mark.django_db


def test_a_note_names_a_failed_run_beside_a_complete_one(lab: Lab) -> None:
    measure_engines(lab)
    before = compare(ENGINES).notes
    Run.objects.filter(pk=lab.run.pk).update(state=RunState.FAILED, trial_count=99)
    (note,) = [note for note in compare(ENGINES).notes if note not in before]
    assert f"Run {lab.run.number} failed after {lab.run.trials.count()} of 99 trials." in note


def test_it_summarises_repeats_and_compares_them_with_the_baseline(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(ENGINES)
    assert [(level.text, level.number) for level in made.levels] == [("1", 1.0), ("32", 32.0)]
    uring, psync = made.panels[0].series
    assert (uring.name, uring.is_baseline, psync.name, psync.is_baseline) == ("io_uring", True, "psync", False)
    cell = psync.cells[0]
    assert (cell.summary.values, cell.summary.n, cell.summary.sd) == ((61.5, 62.0, 62.5), 3, 0.5)
    mean, logs = (61.5 * 62.0 * 62.5) ** (1 / 3), [math.log(value) for value in (61.5, 62.0, 62.5)]
    factor = math.exp(scipy.stats.t.ppf(0.975, 2) * stdev(logs) / 3**0.5)
    interval = (mean / factor, mean * factor)
    assert (cell.summary.mean, cell.summary.low, cell.summary.high) == pytest.approx((mean, *interval))
    assert cell.against_baseline is not None
    assert cell.against_baseline.ratio.value == pytest.approx(0.62, rel=1e-4)
    assert (cell.against_baseline.text, cell.against_baseline.better) == ("−38 %", False)
    assert (cell.text, cell.spread_text) == ("62.0", "60.8 to 63.3")
    assert uring.cells[0].against_baseline is None
    assert made.ratio_as == "percent"


def test_any_series_can_be_the_baseline(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(CompareQuery("iodepth", ("ioengine",), baseline="psync"))
    assert [series.is_baseline for series in made.panels[0].series] == [False, True]
    with pytest.raises(CompareRefused) as caught:
        compare(CompareQuery("iodepth", ("ioengine",), baseline="libaio"))
    assert "Use io_uring, psync." in caught.value.message


def test_all_charts_of_a_factor_share_levels_and_baseline(lab: Lab) -> None:
    measure_engines(lab)
    lab.measure(50.0, 51.0, pattern="randwrite", direction="write", iodepth=1)
    made = compare(CompareQuery("iodepth", ("ioengine",), panel="pattern"))
    assert [(panel.name, len(panel.series)) for panel in made.panels] == [("randread", 2), ("randwrite", 1)]
    assert made.single_factor


def test_sizes_are_in_order_and_names_say_the_factor_of_a_number(lab: Lab) -> None:
    lab.measure(1.0, 2.0, block_size=131072, iodepth=4)
    lab.measure(1.0, 2.0, block_size=4096, iodepth=4)
    made = compare(CompareQuery("block_size", ("iodepth",)))
    assert [level.text for level in made.levels] == ["4 KiB", "128 KiB"]
    assert made.same[:2] == ("randread", "io_uring")  # neither x nor the series
    assert made.panels[0].series[0].name == "Queue depth 4"


def test_a_percentile_that_is_not_supported_leaves_its_result_out(lab: Lab) -> None:
    lab.measure(10.0, 11.0)
    made = compare(CompareQuery("iodepth", metric="latency_p999"))
    assert made.results == 0
    assert "2 results are left out: too few I/Os for p99.9 latency." in made.notes


def test_percentiles_above_17_s_are_not_called_equal(lab: Lab) -> None:
    """fio's histogram ends there: one may be 18 s and the other 60 s."""
    for ioengine in ("io_uring", "psync"):
        for result in lab.measure(10.0, 10.0, 10.0, 10.0, ioengine=ioengine):
            Result.objects.filter(pk=result.pk).update(p99_ns=LAST_BUCKET_NS)
    made = compare(CompareQuery("iodepth", ("ioengine",), metric="latency_p99"))
    assert not any("no difference" in series.sentence for series in made.panels[0].series)
    assert "A percentile above 17 s counts as 17 s, because the histogram ends there." in made.notes


def test_no_results_are_no_error() -> None:
    made = compare(CompareQuery("iodepth", ("ioengine",)))
    assert (made.results, made.panels, made.levels) == (0, (), ())
    assert "No valid results match." in made.notes


def test_it_takes_nine_queries_however_much_there_is(
    lab: Lab, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    measure_engines(lab)
    lab.measure(1.0, 2.0, iodepth=64, facts={"kernel.release": "5"})
    with django_assert_num_queries(9):
        comparison_of(select(ENGINES))


def test_it_can_be_sent_as_json(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(ENGINES)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Comparison) == made


def test_a_query_is_read_from_an_address() -> None:
    pairs = [("x", "iodepth"), ("series", "ioengine,scheduler"), ("panel", ""), ("metric", "latency_p99"), ("run", "3")]
    read = read_query([*pairs, ("factor.block_size", "4k")])
    assert (read.x, read.series, read.panel, read.metric) == ("iodepth", ("ioengine", "scheduler"), "", "latency_p99")
    assert (read.results.runs, read.results.factors) == ((3,), {"block_size": (4096,)})


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([], "compare_x_missing"),
        ([("x", "blocksize")], "compare_factor_unknown"),
        ([("x", "iodepth"), ("series", "iodepth")], "compare_factor_twice"),
        ([("x", "iodepth"), ("metric", "speed")], "compare_metric_unknown"),
        ([("x", "fact."), ("metric", "speed")], "compare_factor_unknown"),
        ([("x", "iodepth"), ("ratios", "odds")], "compare_ratios_unknown"),
        ([("x", "iodepth"), ("series", "ioengine,numjobs,direct,sync")], "compare_too_many"),
    ],
)
def test_an_invalid_query_is_refused_with_a_message(pairs: list[tuple[str, str]], code: str) -> None:
    with pytest.raises(CompareRefused) as caught:
        read_query(pairs)
    assert caught.value.code == code
    with pytest.raises(FilterRefused):
        read_query([("x", "iodepth"), ("colour", "red")])


def test_drives_models_and_repeats_can_be_series(lab: Lab) -> None:
    other = a_target(a_host("b"), "scratch", model="FAST", serial="S2")
    lab.measure(10.0, 11.0)
    lab.measure(20.0, 21.0, target=other)
    by_drive = compare(CompareQuery("iodepth", ("serial",)))
    assert [(s.key, s.name) for s in by_drive.panels[0].series] == [
        ("S2", "FAST S2"), ("a/scratch", "a/scratch (no serial)"),
    ]  # fmt: skip
    assert by_drive.single_factor
    lab.measure(10.0, 11.0, target=a_target(lab.target.host, "other"))
    assert len(compare(CompareQuery("iodepth", ("serial",))).panels[0].series) == 3
    by_model = compare(CompareQuery("iodepth", ("model",)))
    assert [(one.name, one.points) for one in by_model.mixtures] == [("target", 1)]  # the unknown model has two
    assert [series.name for series in by_model.panels[0].series] == ["FAST"]
    by_repeat = compare(CompareQuery("repeat", ("host",)))
    assert [level.text for level in by_repeat.levels] == ["repeat 1", "repeat 2"]


def test_single_repeats_are_no_doubt_if_nothing_was_repeated(lab: Lab) -> None:
    lab.measure(10.0, iodepth=1)
    lab.measure(10.0, iodepth=2)
    made = compare(read_query([("x", "iodepth")]))
    assert [cell.doubts for cell in made.panels[0].series[0].cells] == [(), ()]
    assert "2 of 2 points were measured once and have no interval." in made.notes


def test_numbers_in_doubt_say_why(lab: Lab) -> None:
    lab.measure(10.0, 10.1, iodepth=1)
    lab.measure(10.0, iodepth=2)
    lab.measure(10.0, 30.0, iodepth=4)
    lab.measure(10.0, 10.1, iodepth=8, invalid=True)
    query = read_query([("x", "iodepth"), ("invalid", "1")])
    doubts = [cell.doubts for cell in compare(query).panels[0].series[0].cells]
    assert doubts == [
        (),
        ("n = 1: its spread is unknown",),
        ("noisy (×/÷ 1,070)",),
        ("includes invalid results: marked as invalid",),
    ]


def test_a_factor_in_two_dimensions_is_refused_with_a_message() -> None:
    with refuses("compare_factor_twice"):
        read_query([("x", "iodepth"), ("panel", "iodepth")])


def test_results_that_may_not_be_the_speed_of_the_drive_are_doubted(lab: Lab) -> None:
    first, second, _ = lab.measure(10.0, 11.0, 12.0, direct=True)
    Result.objects.filter(pk=first.pk).update(steadiness="drifting", steadiness_numbers={"seconds": 60, "drift": 0.2})
    Result.objects.filter(pk=second.pk).update(steadiness="steady", device_share=0.07)
    made = compare(ENGINES)
    (cell,) = made.panels[0].series[0].cells
    assert cell.doubts[:2] == ("drifting (1 of 3)", "reads not from the drive (1 of 3)")
    words = "May not be the speed of the drive: 1 drifting, 1 reads not from the drive, of 3 results."
    assert any(note.startswith(words) for note in made.notes)


def test_reads_of_a_purged_drive_are_doubted_as_such(lab: Lab) -> None:
    lab.measure(10.0, direct=True, facts=FACTS | {"stream.0.drive_state": "purged"})
    (cell,) = compare(ENGINES).panels[0].series[0].cells
    assert cell.doubts[0] == "reads of a purged drive (1 of 1)"


def test_a_file_has_no_test_result_without_repeats(lab: Lab) -> None:
    lab.measure(10.0)
    lab.measure(20.0, ioengine="psync")
    _, psync = comparison_table(compare(ENGINES)).rows
    assert tuple(psync)[-7:] == (pytest.approx(2.0), *(None,) * 6)


@pytest.mark.parametrize("separator", [",", "|", JOINER])
def test_keys_of_several_levels_never_collide(separator: str) -> None:
    mark = separator.strip()
    parts = ["a", "b", "", f"a{separator}b", f"a{mark}", f"{mark}b", "\\", f"\\{mark}", f"a\\{separator}b"]
    keys = [joined(pair, separator) for pair in product(parts, parts)]
    assert len(set(keys)) == len(keys)
    assert joined(["io_uring", "none"], separator) == f"io_uring{separator}none"


def test_levels_with_commas_do_not_share_a_key() -> None:
    for host, drive, iops in (("a,b", "c", "10200"), ("a", "b,c", "10300")):
        an_import(title=f"{host} {drive}", host=host, drive=drive, text=PLAIN.replace("10200", iops))
    made = compare(read_query([("x", "iodepth"), ("series", "host,model")]))
    assert len({series.key for panel in made.panels for series in panel.series}) == 2


def test_an_unknown_dimension_suggests_attributes_of_results_too() -> None:
    with pytest.raises(CompareRefused) as refused:
        read_query([("x", "iodepth"), ("series", "import")])
    assert "`imported`" in refused.value.message
