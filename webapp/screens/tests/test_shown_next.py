"""Trends whose own runs have not changed are not computed again; what is shown after a run is computed before it is."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from webapp.core import answers, changes
from webapp.core.answers import Question
from webapp.plans.models import PlanVersion
from webapp.results.retention import delete_run
from webapp.results.validity import mark_run
from webapp.runs.models import Run
from webapp.screens import tasks
from webapp.screens.overview.views import compared
from webapp.screens.trend.views import TrendAnswer, trend_answer
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.trends.tests.measuring import Nights

pytestmark = pytest.mark.django_db


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the answers that were computed, not read."""
    names: list[str] = []
    compute = answers._computed

    def recorded(question: Question[Any], key: bytes) -> Any:
        names.append(question.kind.__qualname__)
        return compute(question, key)

    monkeypatch.setattr(answers, "_silent_until_s", 0.0)
    monkeypatch.setattr(answers, "REDIS_LIMIT_S", 10.0)  # beside other tests, Redis may answer late
    answers._client.cache_clear()
    monkeypatch.setattr(answers, "_computed", recorded)
    return names


@pytest.fixture
def version() -> PlanVersion:
    return a_version(slug="nightly")


@pytest.fixture
def nights(version: PlanVersion) -> Nights:
    made = Nights(version, a_target(a_host("a"), "scratch"))
    made.run(1000)
    made.run(1010)
    return made


def numbers(nights: Nights) -> list[int]:
    """Of the runs of the trend."""
    answer = trend_answer(nights.version.plan, nights.target, QueryDict())
    return [value.run.number for value in answer.trend.runs]


def test_a_trend_stays_until_one_of_its_own_runs_changes(nights: Nights, computed: list[str]) -> None:
    other = Nights(nights.version, a_target(a_host("b"), "scratch"), count=10)
    assert [numbers(nights), computed] == [[1, 2], ["TrendAnswer"]]
    other.run(900)
    assert [numbers(nights), computed] == [[1, 2], ["TrendAnswer"]]
    nights.run(1020)
    assert [numbers(nights), len(computed)] == [[1, 2, 3], 2]
    mark_run(run=Run.objects.get(number=2), reason="the wrong drive", by=None)
    assert [numbers(nights), len(computed)] == [[1, 3], 3]


def test_a_run_that_ends_between_the_choice_of_runs_and_their_reading_is_not_part_of_the_answer(
    nights: Nights, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the trend would show this run again after it was deleted."""
    read, pending = changes.seals, [1]

    def late(several: Sequence[Any]) -> list[int]:
        seals = read(several)
        if pending:
            pending.pop()
            nights.run(1020)
        return seals

    monkeypatch.setattr(changes, "seals", late)
    numbers(nights)
    assert not pending
    delete_run(run=Run.objects.get(number=3), by=a_user("petra"))
    assert numbers(nights) == [1, 2]


def test_the_task_computes_what_is_shown_after_a_run_for_readers_in_any_time_zone(
    nights: Nights, computed: list[str], operator: Client
) -> None:
    nights.run(1020)
    Run.objects.update(ended_at=timezone.now())
    tasks.tick()
    assert {"ShownPairs", "TrendAnswer"} <= {*computed}
    computed.clear()
    tasks.tick()
    operator.cookies["timezone"] = "Asia/Tokyo"
    for address in ("/", "/trends/?plan=nightly&target=a/scratch"):
        assert operator.get(address).status_code == 200
    assert not {"ShownPairs", "TrendAnswer"} & {*computed}


def test_answers_for_all_time_zones_name_no_times(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_silent_until_s", float("inf"))  # without Redis
    made: list[tuple[object, TrendAnswer]] = []
    for zone in ("Asia/Tokyo", "America/Lima"):
        with timezone.override(zone):
            made.append((compared(), trend_answer(nights.version.plan, nights.target, QueryDict())))
    assert made[0] == made[1]
