"""More targets at once against one alone: said in a sentence, and no confusion with other targets."""

import msgspec
import pytest

from webapp.analysis.answer import DifferenceKind, FindingKind
from webapp.analysis.comparing import compare
from webapp.analysis.question import CompareQuery
from webapp.analysis.run_answer import run_answer
from webapp.analysis.tests.orders import alternate
from webapp.hosts.models import Target
from webapp.results.models import Result, StreamRun
from webapp.runs.models import FurtherTarget
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import Lab
from worker.contract.items import Direction, DirectionResult, LatencyKind

QUERY = CompareQuery("at_once", ())
NOISE = (1.0, 1.01, 0.99, 1.005)


@pytest.fixture
def drives(db: None) -> list[Target]:
    host = a_host("a")
    return [a_drive(host, slug, model="M", serial=slug.upper()) for slug in ("x", "y")]


def beside(results: list[Result], *further: Target) -> None:
    """These were measured on those as well."""
    FurtherTarget.objects.bulk_create(
        FurtherTarget(trial=result.trial, stream=stream, target=target)
        for result in results
        for stream, target in enumerate(further, start=1)
    )


def measured(drives: list[Target]) -> Lab:
    lab = Lab(drives[0])
    lab.measure(99.0, 101.0, at_once=1)
    lab.measure(99.0, 101.0, at_once=1, target=drives[1])
    beside(lab.measure(149.0, 151.0, at_once=2), drives[1])
    return lab


def test_it_says_how_many_times_as_much_and_how_sure_that_is(drives: list[Target]) -> None:
    measured(drives)
    (panel,) = compare(QUERY).panels
    (sentence,) = panel.scaling
    assert sentence.startswith("Against the IOPS of one target alone, 2 at once reach ×1.50 (95 % CI ×")
    assert sentence.endswith("; 75 % of linear scaling).")


def with_streams(results: list[Result], shares: tuple[float, float]) -> None:
    """Each stream of these sums measured such a share of its sum."""
    for result in results:
        first = result.stream_run
        assert first is not None
        for number, share in enumerate(shares):
            of_stream = DirectionResult(
                direction=Direction.READ, ios=int(share * (result.ios or 0)), bytes=0, runtime_ms=3000,
                iops=share * (result.iops or 0), bytes_per_s=0, latency_kind=LatencyKind.LAT, latency_min_ns=1,
                latency_mean_ns=1, latency_max_ns=1, latency_stddev_ns=0, latency=b"",
            )  # fmt: skip
            values = {"command": [], "directions": msgspec.json.encode([of_stream]), "started_at": first.started_at}
            StreamRun.objects.update_or_create(attempt=first.attempt, stream=number, defaults=values)


@pytest.mark.parametrize(("shares", "payers"), [((0.66, 0.34), ["a/y"]), ((0.5, 0.5), [])])
def test_the_target_that_loses_beside_the_other_is_named(
    drives: list[Target], shares: tuple[float, float], payers: list[str]
) -> None:
    lab = Lab(drives[0])
    lab.run.targets.add(drives[1])
    for drive in drives:
        lab.measure(*(100 * noise for noise in NOISE), at_once=1, target=drive)
    sums = lab.measure(*(150 * noise for noise in NOISE), at_once=2)
    beside(sums, drives[1])
    with_streams(sums, shares)
    alternate(lab.run)
    found = [each for each in run_answer(lab.run).findings if each.kind is FindingKind.INTERFERENCE]
    assert [each.sentence.split()[2] for each in found] == payers


def test_each_series_is_named_and_what_is_no_sum_is_left_out(drives: list[Target]) -> None:
    lab = measured(drives)
    beside(lab.measure(200.0, at_once=2, iodepth=8), drives[1])
    lab.measure(100.0, at_once=1, iodepth=8)
    (panel,) = compare(CompareQuery("at_once", ("iodepth",))).panels
    said = panel.scaling
    assert [sentence.partition(":")[0] for sentence in said] == ["Queue depth 1", "Queue depth 8"]
    assert said[1].endswith("2 at once reach ×2.00 (measured once; 100 % of linear scaling).")
    assert compare(CompareQuery("at_once", ("iodepth",), metric="latency_mean")).panels[0].scaling == ()
    assert compare(CompareQuery("iodepth", ("at_once",), baseline="1")).panels[0].scaling == ()


def test_means_over_other_workloads_do_not_scale(drives: list[Target]) -> None:
    """One target was measured at two block sizes, two at once at one of them."""
    lab = measured(drives)
    for drive in drives:
        lab.measure(9.0, 11.0, at_once=1, block_size=2**20, target=drive)
    assert compare(QUERY).panels[0].scaling == ()


def test_that_levels_are_of_other_groups_of_the_same_targets_is_what_is_compared(drives: list[Target]) -> None:
    measured(drives)
    made = compare(QUERY)
    (target,) = [one for one in made.differs if one.name == "target"]
    assert target.kind is DifferenceKind.FOLLOWS
    assert "the same targets (a/x, a/y)" in target.text
    by_series = compare(CompareQuery("iodepth", ("at_once",), baseline="1"))
    assert by_series.single_factor


def test_other_targets_or_models_at_one_level_are_told(drives: list[Target]) -> None:
    lab = measured(drives)
    other = a_drive(drives[0].host, "z", model="M")
    lab.measure(100.0, at_once=1, target=other)
    (target,) = [one for one in compare(QUERY).differs if one.name == "target"]
    assert target.kind is DifferenceKind.POOLED
    Result.objects.filter(target=other).delete()
    Target.objects.filter(pk=drives[1].pk).update(model="N")
    assert DifferenceKind.FOLLOWS not in {one.kind for one in compare(QUERY).differs if one.name == "target"}
