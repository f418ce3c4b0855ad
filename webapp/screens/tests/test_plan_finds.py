"""What a plan can find, in its preview."""

import json

import msgspec
import pytest
from django.test import Client

from webapp.analysis.detectable import Detectable
from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import DOCUMENT, a_version

pytestmark = pytest.mark.django_db
COMPARED = msgspec.structs.replace(
    DOCUMENT, repeats=5, common={**DOCUMENT.common, "ioengine": "io_uring, psync", "sync_depth": "threads"}
)


@pytest.fixture
def target() -> Target:
    return a_target(a_host("a"), "scratch")


def finds(client: Client, target: Target, document: PlanDocument) -> dict[str, float | str | None] | None:
    slug = a_version(document).plan.slug
    answer = client.get(f"/api/v1/plans/{slug}/preview?target={target}")
    assert answer.status_code == 200, answer.content
    found: dict[str, float | str | None] | None = json.loads(answer.content)["finds"]
    return found


def test_it_says_what_the_plan_can_find(operator: Client, target: Target) -> None:
    found = finds(operator, target, COMPARED)
    assert found is not None
    assert found["percent"] == pytest.approx(6.1, abs=0.5)
    assert (found["comparisons"], found["repeats"], found["noise_percent"], found["target"]) == (2, 5, 2, "")


def test_with_two_repeats_it_finds_nothing(operator: Client, target: Target) -> None:
    found = finds(operator, target, msgspec.structs.replace(COMPARED, repeats=2))
    assert found is not None
    assert (found["percent"], found["comparisons"]) == (None, 2)


def test_a_plan_that_only_raises_the_load_compares_nothing(operator: Client, target: Target) -> None:
    found = finds(operator, target, DOCUMENT)
    assert found is not None
    assert found["comparisons"] == 0


def test_the_page_shows_it(operator: Client, target: Target) -> None:
    slug = a_version(COMPARED).plan.slug
    page = operator.get(f"/plans/{slug}/?target={target.id}").content.decode()
    assert 'id="finds"' in page
    assert "more repeats or a quieter host" not in page


@pytest.mark.parametrize(
    ("percent", "words", "coarse"),
    [(6.123, "6.12 %", False), (20.0, "20.0 %", False), (45.678, "45.7 %", True), (292.2, "×3.92", True)],
)
def test_large_differences_are_factors_without_false_digits(
    operator: Client, target: Target, monkeypatch: pytest.MonkeyPatch, percent: float, words: str, coarse: bool
) -> None:
    found = Detectable(percent=percent, repeats=3, comparisons=1, noise_percent=19.9, results=18, target="a/b")
    monkeypatch.setattr("webapp.screens.plans.previewing.detectable", lambda *_: found)
    slug = a_version(COMPARED).plan.slug
    page = " ".join(operator.get(f"/plans/{slug}/?target={target.id}").content.decode().split())
    assert f"Finds only differences of <strong>{words}</strong> or more" in page
    assert ("more repeats or a quieter host are needed" in page) is coarse
    assert "Overwrites nothing: in directories, it writes only its own files." in page
