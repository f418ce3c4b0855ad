"""The page and the API of a run whose plan has a goal: while it goes, after its answer, and without one."""

import re

import msgspec
import pytest
from django.test import Client

from webapp.analysis.tests.searches import BUDGET, LOADS, begun, loaded, measure, restored, under_way
from webapp.hosts.models import Host
from webapp.runs.models import AttemptKind, Run
from webapp.runs.services import cancel_run
from webapp.screens.runs.search import search_heading, search_views
from webapp.tests.factories.hosts import a_host
from webapp.tests.factories.reports import ACCEPTED, CANCELLED, failed, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def host() -> Host:
    return a_host()


def page(client: Client, run: Run) -> str:
    response = client.get(f"/runs/{run.number}/")
    assert response.status_code == 200
    return str(response.content.decode())


def test_an_ended_search_states_its_answer(host: Host, viewer: Client) -> None:
    run = begun(host)
    for _ in range(BUDGET):
        measure(host)
    restored(host)
    run.refresh_from_db()
    (view,) = search_views(run)
    assert view.answer == search_heading([view])
    assert f"<h1>{view.answer}</h1>" in page(viewer, run)
    assert len(view.dots) == BUDGET
    assert sum(dot.is_final for dot in view.dots) == 8
    assert 0 < sum(dot.is_within for dot in view.dots) < BUDGET
    assert len(view.runners_up) == 1
    assert {row.words for row in view.effects} >= {"Block size 8 KiB"}
    sources = [trial["source"] for trial in viewer.get(f"/api/v1/runs/{run.number}/trials?limit=100").json()["items"]]
    assert sources == ["batch"] * (BUDGET - 8) + ["finalist"] * 8
    (search,) = viewer.get(f"/api/v1/runs/{run.number}").json()["searches"]
    assert (search["budget"], search["budget_s"]) == (BUDGET, None)
    assert (search["trials"], search["combinations"], search["point"]["block_size"]) == (BUDGET, 42, 4096)
    assert search["bound"] >= 0
    assert len(search["runners_up"]) == 1


def test_a_search_shows_its_best_combination_so_far(host: Host, viewer: Client) -> None:
    run = begun(host)
    (view,) = search_views(run)
    assert (view.dots, view.steps) == ([], "")
    page(viewer, run)
    for _ in range(3):
        measure(host)
    (view,) = search_views(run)
    assert len(view.dots) == 3
    assert view.answer in page(viewer, run)
    assert view.answer in viewer.get(f"/runs/{run.number}/searches/").content.decode()
    assert viewer.get(f"/api/v1/runs/{run.number}").json()["searches"][0]["point"] is None


def test_a_cancelled_search_claims_nothing(host: Host, viewer: Client) -> None:
    run = begun(host)
    measure(host)
    cancel_run(run=run, by=None)
    say(host, under_way(host), (1, (ACCEPTED, CANCELLED)))
    restored(host)
    run.refresh_from_db()
    (view,) = search_views(run)
    assert (view.runners_up, view.effects) == ((), ())
    assert view.answer in page(viewer, run)


def test_a_search_over_loads_states_the_highest_share_and_its_interval(host: Host, viewer: Client) -> None:
    run = begun(host, LOADS)
    while under_way(host).kind == AttemptKind.TRIAL:
        loaded(host)
    restored(host)
    (view,) = search_views(run)
    numbers = re.findall("[0-9.]+ [%m]|n = [0-9]", view.answer)
    assert numbers == ["1.00 m", "60 %", "95 %", "60 %", "65 %", "n = 4"]
    assert f"<h1>{view.answer}</h1>" in page(viewer, run)
    (search,) = viewer.get(f"/api/v1/runs/{run.number}").json()["searches"]
    assert [search[name]["load"] for name in ("point", "below", "above")] == [60, 60, 65]
    assert search["value"] == pytest.approx(6_000, rel=0.02)
    assert search["bound"] is None


def test_the_maximum_is_no_answer_of_a_search_over_loads(host: Host) -> None:
    """It is a closed loop, even if its latency is within the limit."""
    run = begun(host, msgspec.structs.replace(LOADS, goal="highest iops where latency_mean <= 2ms"))
    loaded(host)
    (view,) = search_views(run)
    assert view.answer == "No result within the limit yet"
    assert [dot.is_within for dot in view.dots] == [False]


def test_a_search_over_loads_does_not_name_a_share_without_rounds(host: Host) -> None:
    """10 % fails, and the trials end before it is certain that 15 %, at 0.237 to 0.284 ms, is above the limit."""
    run = begun(host, msgspec.structs.replace(LOADS, goal="highest iops where latency_mean <= 0.236ms"))
    Run.objects.filter(pk=run.pk).update(budget=15)
    while (attempt := under_way(host)).kind == AttemptKind.TRIAL:
        assert attempt.trial is not None
        if attempt.trial.point["load"] == 10:
            say(host, attempt, (1, (ACCEPTED,)), (2, (failed(),)))
        else:
            loaded(host, noise=0.1)
    run.refresh_from_db()
    (view,) = search_views(run)
    assert "already at 15 % of the maximum (not certain, n = 4)" in view.answer
