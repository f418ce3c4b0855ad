"""Runs that repeat until decided."""

import itertools
from random import Random
from typing import Any

import msgspec
import pytest
from scipy.special import ndtr

from webapp.analysis.claims import Looks
from webapp.analysis.deciding import resembles_itself
from webapp.analysis.run_answer import run_answer
from webapp.hosts.models import Host, Target
from webapp.plans.document import Order, PlanDocument
from webapp.plans.points import point_key
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, Run, RunState, Trial, TrialState
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import DOCUMENT, a_point, a_version
from webapp.tests.factories.reports import RESULT, run_to_the_end
from webapp.tests.factories.runs import next_number
from worker.contract.workload import FioWorkload, Pattern

REPEATS = 8
DEPTHS = (1, 32)
PLAN = msgspec.structs.replace(
    DOCUMENT, repeats=REPEATS, decide_percent=5, order=Order.RANDOMISED,
    common={**DOCUMENT.common, "ioengine": "io_uring, psync"},
)  # fmt: skip
WORKLOAD = FioWorkload(pattern=Pattern.RANDREAD, size_bytes=2**26, runtime_s=3)
Speeds = dict[tuple[str, int], float]  # engine and depth -> bytes/s


def a_run_of(target: Target, document: PlanDocument = PLAN) -> Run:
    """Two I/O engines at two depths, eight times."""
    places = list(itertools.product(range(1, REPEATS + 1), ("io_uring", "psync"), DEPTHS))
    run = Run.objects.create(
        number=next_number(), version=a_version(document), seed=7, trial_count=len(places), armed_serials=[]
    )
    run.targets.set([target])
    for index, (repeat, engine, depth) in enumerate(places):
        point = a_point(ioengine=engine, iodepth=depth)
        Trial.objects.create(
            run=run, index=index, repeat=repeat, part="random", host=target.host, target=target, point=point,
            point_key=point_key(point), workload=msgspec.to_builtins(WORKLOAD),
            settings={}, destructive=False, attempts_left=2,
        )  # fmt: skip
    return run


def measure(host: Host, speeds: Speeds, trials: int, spread: float = 0.003) -> None:
    """So many trials, or fewer if the run has no more."""
    random = Random(trials)
    for _ in range(trials):
        dispatch_host(host.pk)
        attempt = Attempt.objects.filter(host=host, ended_at=None, trial__isnull=False).select_related("trial").first()
        if attempt is None:
            return
        point: dict[str, Any] = attempt.trial.point  # type: ignore[union-attr]
        rate = speeds[point["ioengine"], point["iodepth"]] * (1 + random.gauss(0, spread))
        (read,) = RESULT.directions
        ios = round(rate / 4096 * read.runtime_ms / 1000)
        changed = msgspec.structs.replace(
            read, ios=ios, bytes=ios * 4096, iops=ios * 1000 / read.runtime_ms, bytes_per_s=rate
        )
        run_to_the_end(host, attempt, result=msgspec.structs.replace(RESULT, directions=(changed,)))


def repeats_of(run: Run, depth: int) -> int:
    return run.trials.filter(state=TrialState.DONE, point__iodepth=depth).count() // 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("broker")
def test_a_run_ends_when_all_its_comparisons_are_decided() -> None:
    """One depth differs by half, the other is equal: neither needs eight repeats."""
    host = a_host()
    run = a_run_of(a_target(host))
    measure(host, {("io_uring", 1): 100e6, ("psync", 1): 100e6, ("io_uring", 32): 300e6, ("psync", 32): 200e6}, 4 * 8)
    run.refresh_from_db()
    assert run.trials.filter(state=TrialState.PLANNED).count() == 0
    left_out = run.trials.filter(state=TrialState.CANCELLED)
    assert left_out.count() >= 4
    assert set(left_out.values_list("reason_code", flat=True)) == {"decided"}
    assert left_out.filter(repeat__lte=3).count() == 0
    assert run_answer(run).factors[0].factor == "ioengine"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("broker")
def test_only_points_with_an_open_comparison_are_repeated() -> None:
    """At depth 1 the engines differ by the margin, which is neither different enough to see nor equal."""
    host = a_host()
    run = a_run_of(a_target(host))
    measure(
        host, {("io_uring", 1): 100e6, ("psync", 1): 95.3e6, ("io_uring", 32): 300e6, ("psync", 32): 150e6}, 4 * 8, 0.02
    )
    assert repeats_of(run, 32) < REPEATS
    assert repeats_of(run, 1) > repeats_of(run, 32)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("changes", [{"decide_percent": 0}, {"decide": ("block_size",)}])
def test_a_plan_that_does_not_ask_or_whose_factor_is_not_compared_takes_all_repeats(changes: dict[str, Any]) -> None:
    host = a_host()
    run = a_run_of(a_target(host), msgspec.structs.replace(PLAN, **changes))
    measure(host, {(engine, depth): 100e6 for engine in ("io_uring", "psync") for depth in DEPTHS}, 4 * 5)
    assert not run.trials.filter(state=TrialState.CANCELLED).exists()
    run.refresh_from_db()
    assert run.state != RunState.DONE


@pytest.mark.parametrize(("looks", "boundary"), [(2, 2.178), (5, 2.413), (10, 2.555), (20, 2.672)])
def test_the_level_of_each_look_is_that_of_the_published_tables(looks: int, boundary: float) -> None:
    """C. Jennison, B. W. Turnbull: Group Sequential Methods, 2000, table 2.1, for 5 %."""
    assert Looks(1, looks).level(0.05) == pytest.approx(2 * ndtr(-boundary), rel=0.01)


def test_one_look_keeps_the_whole_level() -> None:
    assert Looks(3, 3).level(0.05) == 0.05


def test_repeats_that_drift_resemble_each_other() -> None:
    random = Random(1)
    drifting = [[0.01 * repeat + random.gauss(0, 0.002) for repeat in range(9)] for _ in range(4)]
    independent = [[random.gauss(0, 0.02) for _ in range(9)] for _ in range(4)]
    assert resembles_itself(drifting)
    assert not resembles_itself(independent)
    assert not resembles_itself([[0.1, 0.1, 0.1], [0.1]])
