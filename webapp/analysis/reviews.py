"""People confirm or dismiss findings of runs and imports. A review of a run's finding is kept by plan and key, so it
also holds for the same finding of other runs of the plan; the last one counts."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet
from msgspec import structs

from webapp.analysis.evidence import Review, RunFinding
from webapp.analysis.import_findings import Conclusions, ImportFinding, findings_in, stored
from webapp.analysis.models import FindingReview, ImportFindingReview
from webapp.analysis.models import Review as StoredReview
from webapp.analysis.run_answer import BETWEEN_CHARTS, RunAnswer, run_answer, run_answers, undecided_of
from webapp.core.errors import NotFound, Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.results.models import Import
from webapp.runs.models import Run

MAX_REASON_LENGTH = 500
_KINDS = {Run: "run", Import: "import"}  # in codes of the audit
_ACTIONS = {
    FindingReview.Verdict.CONFIRMED.value: "finding_confirm",
    FindingReview.Verdict.DISMISSED.value: "finding_dismiss",
}


@transaction.atomic
def review_finding(*, of: Run | Import, key: str, verdict: str, reason: str, by: User) -> None:
    """Raises Refusal for a finding that the run or import does not have, an unknown verdict or a long reason."""
    sentence = _sentence(of, key)
    if verdict not in _ACTIONS:
        raise Refusal("verdict_unknown", f"{verdict} is unknown. Use {' or '.join(_ACTIONS)}.")
    if len(reason.strip()) > MAX_REASON_LENGTH or "\0" in reason:
        raise Refusal("reason_too_long", f"The reason may have at most {MAX_REASON_LENGTH} characters.")
    values = {"verdict": verdict, "reason": reason.strip(), "by": by}
    if isinstance(of, Run):
        FindingReview.objects.update_or_create(plan=of.version.plan, key=key, defaults=values)
    else:
        ImportFindingReview.objects.update_or_create(imported=of, key=key, defaults=values)
    detail = {"finding": sentence, **({"reason": reason.strip()} if reason.strip() else {})}
    audit(by=by, action=f"{_KINDS[type(of)]}.{_ACTIONS[verdict]}", on=of, detail=detail)


@transaction.atomic
def undo_review(*, of: Run | Import, key: str, by: User) -> bool:
    """Whether there was one. Raises Refusal for a finding that the run or import does not have."""
    sentence = _sentence(of, key)
    deleted, _ = _reviews(of).filter(key=key).delete()
    if deleted:
        audit(by=by, action=f"{_KINDS[type(of)]}.finding_review_undo", on=of, detail={"finding": sentence})
    return bool(deleted)


def _sentence(of: Run | Import, key: str) -> str:
    """Of a finding, without its review."""
    findings = run_answer(of).findings if isinstance(of, Run) else _stored(of)
    for finding in findings:
        if finding.key == key:
            return finding.sentence
    what = f"{_KINDS[type(of)].capitalize()} {of.number}"
    raise NotFound("finding_unknown", f"{what} has no finding {key[:40]}. Reload the page.")


def _stored(imported: Import) -> Sequence[ImportFinding]:
    return findings_in(stored(imported) or Conclusions(), imported.number)


def _reviews(of: Run | Import) -> "QuerySet[FindingReview] | QuerySet[ImportFindingReview]":
    if isinstance(of, Run):
        return FindingReview.objects.filter(plan=of.version.plan)
    return ImportFindingReview.objects.filter(imported=of)


def findings_of_import(imported: Import, conclusions: Conclusions | None = None) -> list[ImportFinding]:
    """The most important first, with reviews, also the dismissed ones. Empty until they are made. `conclusions`: the
    stored ones, if they are read already. One query, or two."""
    findings = findings_in(conclusions, imported.number) if conclusions else _stored(imported)
    return reviewed(imported, findings)


Reviewed = TypeVar("Reviewed", RunFinding, ImportFinding)


def reviewed(of: Run | Import, findings: Iterable[Reviewed]) -> list[Reviewed]:
    """The findings of a run or an import with their reviews. One query."""
    reviews = {each.key: each for each in _reviews(of).select_related("by")}
    return [with_review(each, reviews.get(each.key)) for each in findings]


def answer_of(run: Run) -> RunAnswer:
    return answers_of([run])[0]


def answers_of(runs: Iterable[Run]) -> list[RunAnswer]:
    """In the order of the runs, with reviews: their headlines state nothing that somebody dismissed. One query more
    than `run_answers`."""
    listed = list(runs)
    answers = run_answers(listed)
    plans = {run.version.plan_id for run in listed}
    keys = {finding.key for answer in answers for finding in answer.findings}
    found = FindingReview.objects.filter(plan__in=plans, key__in=keys).select_related("by")
    reviews = {(each.plan_id, each.key): each for each in found}
    return [
        _with_headline(
            answer, [with_review(each, reviews.get((run.version.plan_id, each.key))) for each in answer.findings]
        )
        for run, answer in zip(listed, answers, strict=True)
    ]


def _with_headline(answer: RunAnswer, findings: Sequence[RunFinding]) -> RunAnswer:
    answer = structs.replace(answer, findings=tuple(findings))
    if stated := stated_in(answer):
        return structs.replace(answer, headline=stated.sentence, claim=stated.claim)
    if any(not each.is_dismissed for each in findings):
        return structs.replace(answer, headline=f"{undecided_of(answer)}.", claim=undecided_of(answer))
    return answer


def stated_in(answer: RunAnswer) -> RunFinding | None:
    """The finding of the headline: the first that nobody dismissed. A ratio between charts does not answer what the
    plan asked, so it is no headline of a run whose factors have no certain difference."""
    first = next((each for each in answer.findings if not each.is_dismissed), None)
    return None if first and first.kind in BETWEEN_CHARTS and undecided_of(answer) else first


def with_review(finding: Reviewed, review: StoredReview | None) -> Reviewed:
    if review is None:
        return finding
    by = review.by.username if review.by else ""
    return structs.replace(finding, review=Review(verdict=review.verdict, by=by, at=review.at, reason=review.reason))
