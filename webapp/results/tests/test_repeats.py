"""Repeats that are not needed are skipped."""

import msgspec
import pytest

from webapp.hosts.models import Host
from webapp.plans.models import PlanVersion
from webapp.results.rounds import interval
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, Run, RunState
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, failed, run_to_the_end, say
from webapp.tests.factories.runs import a_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def version(spread_percent: int, repeats_min: int = 3) -> PlanVersion:
    return a_version(
        msgspec.structs.replace(DOCUMENT, repeats=6, spread_percent=spread_percent, repeats_min=repeats_min)
    )


def under_way(host: Host) -> Attempt:
    """The host's order, sent now if there was none."""
    dispatch_host(host.pk)
    return Attempt.objects.filter(host=host, ended_at=None).get()


def measure(host: Host, bytes_per_s: float) -> None:
    (read,) = RESULT.directions
    result = msgspec.structs.replace(RESULT, directions=(msgspec.structs.replace(read, bytes_per_s=bytes_per_s),))
    run_to_the_end(host, under_way(host), result=result)


def states(run: Run) -> list[str]:
    return list(run.trials.order_by("index").values_list("state", flat=True))


def test_further_repeats_are_skipped_once_the_spread_is_known() -> None:
    host = a_host()
    run = a_run(a_target(host), trials=6, version=version(5))
    for rate in (100e6, 101e6):
        measure(host, rate)
    assert states(run).count("cancelled") == 0
    measure(host, 99e6)
    assert states(run) == ["done"] * 3 + ["cancelled"] * 3
    words = "Not needed: after 3 repeats, the 95 % interval of the bandwidth of every point here is within ±5 %."
    assert run.trials.get(index=5).reason == words
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (DONE,)))
    run.refresh_from_db()
    assert run.state == RunState.DONE


def test_a_wide_spread_takes_all_repeats() -> None:
    host = a_host()
    run = a_run(a_target(host), trials=6, version=version(5))
    for rate in (100e6, 150e6, 120e6, 90e6):
        measure(host, rate)
    assert "cancelled" not in states(run)


def test_without_a_percentage_nothing_is_skipped() -> None:
    host = a_host()
    run = a_run(a_target(host), trials=6, version=version(0))
    for _ in range(4):
        measure(host, 100e6)
    assert "cancelled" not in states(run)


def test_a_repeat_is_complete_or_skipped_as_a_whole() -> None:
    """Two targets of one host: the rest is skipped after both have three repeats, not after one."""
    host = a_host()
    run = a_run(a_target(host), a_target(host), trials=6, version=version(5))
    for _ in range(5):
        measure(host, 100e6)
    assert "cancelled" not in states(run)
    measure(host, 100e6)
    assert states(run) == ["done"] * 6 + ["cancelled"] * 6


def test_a_failed_trial_is_no_repeat() -> None:
    host = a_host()
    run = a_run(a_target(host), trials=6, version=version(5))
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (failed(),)))
    for _ in range(2):
        measure(host, 100e6)
    assert "cancelled" not in states(run)
    measure(host, 100e6)
    assert states(run) == ["failed", "done", "done", "done", "cancelled", "cancelled"]


def test_the_interval_is_that_of_student() -> None:
    assert interval([99.0, 100.0, 101.0]) == pytest.approx(4.303 / 3**0.5 / 100, rel=1e-3)
    assert interval([100.0]) == float("inf")
    assert interval([0.0, 0.0, 0.0]) == float("inf")
