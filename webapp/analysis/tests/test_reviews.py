"""A review is kept by plan and key: it holds for the same finding of the next run, and can be taken back."""

from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.analysis.evidence import Review, RunFinding
from webapp.analysis.models import FindingReview
from webapp.analysis.reviews import MAX_REASON_LENGTH, review_finding, reviewed, undo_review
from webapp.analysis.run_answer import run_answer
from webapp.analysis.run_findings import make_due, newest
from webapp.analysis.tests.capped import a_capped_run
from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def the_finding(run: Run) -> RunFinding:
    (finding,) = reviewed(run, run_answer(run).findings)
    return finding


def review_of(run: Run) -> Review:
    review = the_finding(run).review
    assert review
    return review


@pytest.fixture
def runs() -> tuple[Run, Run]:
    """Two of one plan."""
    version, target = a_version(), a_target(a_host("h"), "loop0")
    first, second = (a_capped_run(lab=Lab(target, version=version, number=number)) for number in (1, 2))
    return first, second


def test_a_dismissed_finding_is_dismissed_in_the_next_run_of_the_plan(runs: tuple[Run, Run]) -> None:
    ann, (first, second) = a_user("ann"), runs
    key = the_finding(first).key
    review_finding(of=first, key=key, verdict="dismissed", reason=" a throttled drive ", by=ann)
    review = review_of(second)
    assert (review.verdict, review.by, review.reason) == ("dismissed", "ann", "a throttled drive")
    make_due(60)
    assert newest(timezone.now() - timedelta(days=1), 10) == []


def test_it_stays_news_in_another_plan(runs: tuple[Run, Run]) -> None:
    other = a_capped_run(3)
    review_finding(of=runs[0], key=the_finding(runs[0]).key, verdict="dismissed", reason="", by=a_user("ann"))
    make_due(60)
    assert [each.run for each in newest(timezone.now() - timedelta(days=1), 10)] == [other.number]


def test_a_confirmed_finding_stays_news(runs: tuple[Run, Run]) -> None:
    review_finding(of=runs[0], key=the_finding(runs[0]).key, verdict="confirmed", reason="", by=a_user("ann"))
    make_due(60)
    news = newest(timezone.now() - timedelta(days=1), 10)
    assert [each.review.verdict for each in news if each.review] == ["confirmed", "confirmed"]


def test_the_last_review_counts_and_can_be_taken_back(runs: tuple[Run, Run]) -> None:
    ann, bob, (run, _) = a_user("ann"), a_user("bob"), runs
    key = the_finding(run).key
    review_finding(of=run, key=key, verdict="dismissed", reason="", by=ann)
    review_finding(of=run, key=key, verdict="confirmed", reason="", by=bob)
    assert (review_of(run).verdict, review_of(run).by) == ("confirmed", "bob")
    assert undo_review(of=run, key=key, by=ann)
    assert not undo_review(of=run, key=key, by=ann)
    assert the_finding(run).review is None
    actions = (
        AuditEntry.objects.filter(action__startswith="run.finding").order_by("pk").values_list("action", flat=True)
    )
    assert list(actions) == ["run.finding_dismiss", "run.finding_confirm", "run.finding_review_undo"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"key": "0" * 24}, "finding_unknown"),
        ({"verdict": "perhaps"}, "verdict_unknown"),
        ({"reason": "x" * (MAX_REASON_LENGTH + 1)}, "reason_too_long"),
        ({"reason": "a\0b"}, "reason_too_long"),
    ],
)
def test_it_refuses(runs: tuple[Run, Run], changed: dict[str, str], code: str) -> None:
    given = {"key": the_finding(runs[0]).key, "verdict": "dismissed", "reason": "", **changed}
    with pytest.raises(Refusal) as refused:
        review_finding(of=runs[0], by=a_user("ann"), **given)
    assert refused.value.code == code
    assert not FindingReview.objects.exists()


def test_a_review_outlives_the_account_of_its_author(runs: tuple[Run, Run]) -> None:
    ann = a_user("ann")
    review_finding(of=runs[0], key=the_finding(runs[0]).key, verdict="confirmed", reason="", by=ann)
    FindingReview.objects.update(by=None)
    assert review_of(runs[0]).by == ""
