"""A review of a finding of an import is kept when the findings are made again, and can be taken back."""

import pytest
from django.utils import timezone

from webapp.analysis.import_findings import ImportFinding, newest
from webapp.analysis.models import ImportFindings
from webapp.analysis.reviews import MAX_REASON_LENGTH, findings_of_import, review_finding, undo_review
from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.results.models import Import
from webapp.screens.explore.import_findings import make_due
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db
CAPPED = "pattern,iodepth,iops\n" + "".join(
    f"randread,{depth},{iops}\n" for depth, iops in ((1, 458), (2, 919), (4, 1820), (8, 2000), (16, 2000), (32, 2000))
)


@pytest.fixture
def table() -> Import:
    made = an_import(by=a_user("owner"), text=CAPPED)
    make_due(60)
    return made


def first(table: Import) -> ImportFinding:
    return findings_of_import(table)[0]


def test_a_dismissed_finding_stays_dismissed_and_is_no_news(table: Import) -> None:
    before, since = findings_of_import(table), table.created_at
    assert newest(since, 5) == [(table, before[0].sentence)]
    review_finding(of=table, key=before[0].key, verdict="dismissed", reason=" a trial ", by=a_user("ann"))
    ImportFindings.objects.update(seal="older rules", made_at=timezone.now())
    make_due(60)
    review = first(table).review
    assert review is not None
    assert (review.verdict, review.by, review.reason) == ("dismissed", "ann", "a trial")
    assert newest(since, 5) == [(table, each.sentence) for each in before[1:2]]


def test_a_review_can_be_changed_and_taken_back(table: Import) -> None:
    ann, key = a_user("ann"), first(table).key
    for verdict in ("dismissed", "confirmed"):
        review_finding(of=table, key=key, verdict=verdict, reason="", by=ann)
    assert undo_review(of=table, key=key, by=ann)
    assert not undo_review(of=table, key=key, by=ann)
    assert first(table).review is None
    actions = AuditEntry.objects.filter(action__contains="finding").order_by("at").values_list("action", flat=True)
    assert list(actions) == ["import.finding_dismiss", "import.finding_confirm", "import.finding_review_undo"]


@pytest.mark.parametrize(
    ("key", "verdict", "reason", "code"),
    [
        ("none", "confirmed", "", "finding_unknown"), ("", "maybe", "", "verdict_unknown"),
        ("", "dismissed", "x" * (MAX_REASON_LENGTH + 1), "reason_too_long"),
    ],
)  # fmt: skip
def test_what_is_no_review_is_refused(table: Import, key: str, verdict: str, reason: str, code: str) -> None:
    key = key or first(table).key
    with pytest.raises(Refusal) as refusal:
        review_finding(of=table, key=key, verdict=verdict, reason=reason, by=a_user("ann"))
    assert refusal.value.code == code
    assert first(table).review is None


def test_each_finding_has_a_key_of_its_own(table: Import) -> None:
    keys = [finding.key for finding in findings_of_import(table)]
    assert len(keys) == len({*keys}) > 0
