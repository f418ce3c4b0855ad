"""What a run at shares of the load says: up to which share the latency stays below 1 ms."""

import pytest

from webapp.analysis.answer import Conclusion
from webapp.analysis.run_answer import run_answer
from webapp.plans.load import MAX
from webapp.results.metrics import LOAD_ASKED, LOAD_REACHED
from webapp.results.models import Result
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import Lab

SHARES = (25, 50, 75, 90)


@pytest.fixture
def lab(db: None) -> Lab:
    return Lab(a_drive(a_host("a"), "nvme0", model="A", serial="S1"))


def measured(lab: Lab, **p99_us: float) -> str:
    """The answer of a run with these p99 latencies at the shares, and with 9 ms at the maximum."""
    for share, p99 in zip((*SHARES, MAX), (*p99_us.values(), 9_000.0), strict=True):
        for result in lab.measure(1000.0 * share, 1010.0 * share, 990.0 * share, load=share):
            Result.objects.filter(pk=result.pk).update(p99_ns=p99 * 1000)
    Run.objects.filter(pk=lab.run.pk).update(state=RunState.DONE)
    answer = run_answer(lab.run)
    assert (answer.conclusion, answer.findings) == (Conclusion.NONE, ())
    return answer.claim


def test_it_names_the_last_share_below_the_limit_and_the_next_one(lab: Lab) -> None:
    claim = measured(lab, a=200.0, b=400.0, c=2_860.0, d=600.0)
    assert claim == "p99 latency stays below 1 ms up to 50 % of the highest IOPS; at 75 % it is 2.86 ms"


def test_without_a_share_beyond_the_limit_there_is_no_next_one(lab: Lab) -> None:
    """The maximum is a closed loop: its latency belongs to another question."""
    claim = measured(lab, a=200.0, b=400.0, c=500.0, d=600.0)
    assert claim == "p99 latency stays below 1 ms up to 90 % of the highest IOPS"


def test_beyond_the_limit_from_the_first_share_on(lab: Lab) -> None:
    assert measured(lab, a=1_200.0, b=1_300.0, c=1_400.0, d=1_500.0) == "At 25 %, p99 latency is 1.20 ms"


def test_a_share_without_a_result_ends_the_claim(lab: Lab) -> None:
    """Such as one whose trials failed: nothing is claimed of the shares beyond it."""
    for share in (25, 50, 75):
        for result in lab.measure(1000.0 * share, 1010.0 * share, load=share):
            Result.objects.filter(pk=result.pk).update(p99_ns=5_000.0 * share, invalid=share == 50)
    Run.objects.filter(pk=lab.run.pk).update(state=RunState.DONE)
    assert run_answer(lab.run).claim == (
        "p99 latency stays below 1 ms up to 25 % of the highest IOPS; at 50 % there is no result"
    )
    for share in (25, 50):
        Result.objects.filter(run=lab.run, point__load=share).update(invalid=share == 25)
    assert run_answer(lab.run).claim == "At 25 %, there is no result"


def test_a_share_that_could_not_keep_up_is_not_within_the_limit(lab: Lab) -> None:
    """Whatever the latency of the I/Os that were sent."""
    for share in (25, 50, 90):
        for result in lab.measure(1000.0 * share, 1010.0 * share, load=share):
            reached = {LOAD_ASKED: 90_000, LOAD_REACHED: 80 if share == 90 and result.iops == 1000.0 * share else 100}
            Result.objects.filter(pk=result.pk).update(p99_ns=5_000.0 * share, metrics=reached)
    Run.objects.filter(pk=lab.run.pk).update(state=RunState.DONE)
    answer = run_answer(lab.run)
    wanted = "p99 latency stays below 1 ms up to 50 % of the highest IOPS; at 90 %, the storage could not keep up"
    assert answer.claim == wanted
    assert "(1 of 2 results)" in answer.headline
