"""People confirm or dismiss findings of runs and imports. A review of a run's finding is kept by plan and key, so it
also holds for the same finding of other runs of the plan; the last one counts."""

from collections.abc import Iterable
from typing import TypeVar

from django.db import transaction
from msgspec import structs

from webapp.analysis.evidence import Review, RunFinding
from webapp.analysis.import_findings import Conclusions, ImportFinding, findings_in, stored
from webapp.analysis.models import FindingReview, ImportFindingReview
from webapp.analysis.models import Review as StoredReview
from webapp.analysis.run_answer import run_answer
from webapp.core.errors import NotFound, Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.results.models import Import
from webapp.runs.models import Run

MAX_REASON_LENGTH = 500
_ACTIONS = {
    FindingReview.Verdict.CONFIRMED.value: "finding_confirm",
    FindingReview.Verdict.DISMISSED.value: "finding_dismiss",
}


@transaction.atomic
def review_finding(*, run: Run, key: str, verdict: str, reason: str, by: User) -> None:
    """Raises Refusal for a finding that the run does not have, an unknown verdict or a long reason."""
    finding, values = _finding(run, key), _values(verdict, reason, by)
    FindingReview.objects.update_or_create(plan=run.version.plan, key=key, defaults=values)
    audit(by=by, action=f"run.{_ACTIONS[verdict]}", on=run, detail=_detail(finding.sentence, reason))


@transaction.atomic
def review_import_finding(*, imported: Import, key: str, verdict: str, reason: str, by: User) -> None:
    """Raises Refusal for a finding that the import does not have, an unknown verdict or a long reason."""
    finding, values = _import_finding(imported, key), _values(verdict, reason, by)
    ImportFindingReview.objects.update_or_create(imported=imported, key=key, defaults=values)
    audit(by=by, action=f"import.{_ACTIONS[verdict]}", on=imported, detail=_detail(finding.sentence, reason))


def _values(verdict: str, reason: str, by: User) -> dict[str, object]:
    """Of a review. Raises Refusal."""
    if verdict not in _ACTIONS:
        raise Refusal("verdict_unknown", f"{verdict} is unknown. Use {' or '.join(_ACTIONS)}.")
    if len(reason.strip()) > MAX_REASON_LENGTH or "\0" in reason:
        raise Refusal("reason_too_long", f"The reason may have at most {MAX_REASON_LENGTH} characters.")
    return {"verdict": verdict, "reason": reason.strip(), "by": by}


def _detail(sentence: str, reason: str) -> dict[str, object]:
    return {"finding": sentence, **({"reason": reason.strip()} if reason.strip() else {})}


@transaction.atomic
def undo_import_review(*, imported: Import, key: str, by: User) -> bool:
    """Whether there was one. Raises Refusal for a finding that the import does not have."""
    finding = _import_finding(imported, key)
    deleted, _ = ImportFindingReview.objects.filter(imported=imported, key=key).delete()
    if deleted:
        audit(by=by, action="import.finding_review_undo", on=imported, detail=_detail(finding.sentence, ""))
    return bool(deleted)


def _import_finding(imported: Import, key: str) -> ImportFinding:
    known = {finding.key: finding for finding in findings_of_import(imported)}
    if key not in known:
        raise NotFound("finding_unknown", f"Import {imported.number} has no finding {key[:40]}. Reload the page.")
    return known[key]


def findings_of_import(imported: Import) -> list[ImportFinding]:
    """The most important first, with reviews, also the dismissed ones. Empty until they are made. Two queries."""
    reviews = {each.key: each for each in ImportFindingReview.objects.filter(imported=imported).select_related("by")}
    found = findings_in(stored(imported) or Conclusions(), imported.number)
    return [with_review(each, reviews.get(each.key)) for each in found]


@transaction.atomic
def undo_review(*, run: Run, key: str, by: User) -> bool:
    """Whether there was one. Raises Refusal for a finding that the run does not have."""
    finding = _finding(run, key)
    deleted, _ = FindingReview.objects.filter(plan=run.version.plan, key=key).delete()
    if deleted:
        audit(by=by, action="run.finding_review_undo", on=run, detail={"finding": finding.sentence})
    return bool(deleted)


def _finding(run: Run, key: str) -> RunFinding:
    known = {finding.key: finding for finding in run_answer(run).findings}
    if key not in known:
        raise NotFound("finding_unknown", f"Run {run.number} has no finding {key[:40]}. Reload the page.")
    return known[key]


def reviewed(run: Run, findings: Iterable[RunFinding]) -> list[RunFinding]:
    """The findings of the run with their reviews. One query."""
    reviews = {each.key: each for each in FindingReview.objects.filter(plan=run.version.plan).select_related("by")}
    return [with_review(each, reviews.get(each.key)) for each in findings]


Reviewed = TypeVar("Reviewed", RunFinding, ImportFinding)


def with_review(finding: Reviewed, kept: StoredReview | None) -> Reviewed:
    if kept is None:
        return finding
    by = kept.by.username if kept.by else ""
    return structs.replace(finding, review=Review(verdict=kept.verdict, by=by, at=kept.at, reason=kept.reason))
