"""People confirm or dismiss findings of runs. A review is kept by plan and key, so it also holds for the same finding
of other runs of the plan; the last one counts."""

from collections.abc import Iterable

from django.db import transaction
from msgspec import structs

from webapp.analysis.evidence import Review, RunFinding
from webapp.analysis.models import FindingReview
from webapp.analysis.run_answer import run_answer
from webapp.core.errors import NotFound, Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.runs.models import Run

MAX_REASON_LENGTH = 500
_ACTIONS = {
    FindingReview.Verdict.CONFIRMED: "run.finding_confirm",
    FindingReview.Verdict.DISMISSED: "run.finding_dismiss",
}


@transaction.atomic
def review_finding(*, run: Run, key: str, verdict: str, reason: str, by: User) -> None:
    """Raises Refusal for a finding that the run does not have, an unknown verdict or a long reason."""
    finding, reason = _finding(run, key), reason.strip()
    if verdict not in FindingReview.Verdict.values:
        raise Refusal("verdict_unknown", f"{verdict} is unknown. Use {' or '.join(FindingReview.Verdict.values)}.")
    if len(reason) > MAX_REASON_LENGTH or "\0" in reason:
        raise Refusal("reason_too_long", f"The reason may have at most {MAX_REASON_LENGTH} characters.")
    values = {"verdict": verdict, "reason": reason, "by": by}
    FindingReview.objects.update_or_create(plan=run.version.plan, key=key, defaults=values)
    detail = {"finding": finding.sentence, **({"reason": reason} if reason else {})}
    audit(by=by, action=_ACTIONS[FindingReview.Verdict(verdict)], on=run, detail=detail)


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


def with_review(finding: RunFinding, stored: FindingReview | None) -> RunFinding:
    if stored is None:
        return finding
    by = stored.by.username if stored.by else ""
    return structs.replace(finding, review=Review(verdict=stored.verdict, by=by, at=stored.at, reason=stored.reason))
