"""Queues notices about ended runs, once for each run."""

import logging
from collections import Counter
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from webapp.analysis.answer import FindingKind
from webapp.analysis.reviews import reviewed
from webapp.analysis.run_answer import run_answer
from webapp.analysis.verdicts import Outcome
from webapp.core.formatting import duration
from webapp.notices.models import Event
from webapp.notices.services import announce
from webapp.runs.models import Run, RunState, TrialState
from webapp.trends.selectors import Verdict, verdicts_on

log = logging.getLogger(__name__)

MAX_AT_ONCE = 100
FINDINGS = 3  # in a notice


def announce_ended_runs() -> None:
    """Announce all ended runs. If one fails, the others are still announced, and the next tick tries it again."""
    waiting = Run.objects.filter(ended_at__isnull=False, announced_at=None).order_by("ended_at")
    for run_id in list(waiting.values_list("pk", flat=True)[:MAX_AT_ONCE]):
        try:
            announce_run(run_id)
        except Exception:
            log.exception("run %s was not announced; the next tick tries again.", run_id)


@transaction.atomic
def announce_run(run_id: UUID) -> bool:
    """Queue the run's notices. False if they were queued before."""
    if Run.objects.filter(pk=run_id, announced_at=None).update(announced_at=timezone.now()) != 1:
        return False
    run = Run.objects.select_related("version__plan").get(pk=run_id)
    counts = _counts(run)
    event = Event.FAILED if run.state == RunState.FAILED else Event.ENDED
    hosts = list(run.trials.order_by("host__slug").values_list("host__slug", flat=True).distinct())
    announce(
        event=event,
        plan=run.version.plan,
        key=f"run:{run.number}:{event}",
        subject=f"Run {run.number} of {run.version.plan.title} {_outcome(run, counts)}",
        text=_text(run, counts, hosts),
        path=f"/runs/{run.number}/",
        detail=_detail(run, counts, hosts),
    )
    for verdict in verdicts_on(run):
        if verdict.outcome is Outcome.FAILS:
            _announce_worse(run, verdict)
    return True


def _announce_worse(run: Run, verdict: Verdict) -> None:
    baseline, failed = verdict.baseline, verdict.counts[Outcome.FAILS]
    against = f"{baseline.name}, the baseline of {run.version.plan.title} on {baseline.target}"
    rows = [row for row in verdict.rows if row.outcome is Outcome.FAILS]
    fails = "fails against" if all(row.single_values for row in rows) else "is worse than"
    announce(
        event=Event.WORSE,
        plan=run.version.plan,
        key=f"run:{run.number}:worse:{baseline.pk}",
        subject=f"Run {run.number} {fails} {against}",
        text=f"Run {run.number} {fails} {against}: {failed} of {len(verdict.rows)} rows fail.",
        path=f"/runs/{run.number}/",
        detail={
            "run": run.number,
            "baseline_run": baseline.run.number if baseline.run else None,
            "baseline_import": baseline.imported.number if baseline.imported else None,
            "target": str(baseline.target),
            "rows": {"total": len(verdict.rows), **{each.value: count for each, count in verdict.counts.items()}},
        },
    )


def _counts(run: Run) -> Counter[str]:
    return Counter(dict(run.trials.order_by().values_list("state").annotate(Count("pk"))))


def _outcome(run: Run, counts: Counter[str]) -> str:
    if run.state == RunState.FAILED:
        return "failed"
    if run.state == RunState.CANCELLED:
        return "was cancelled"
    failed = counts[TrialState.FAILED]
    return f"is done: {failed} of {run.trial_count} trials failed" if failed else "is done"


def _text(run: Run, counts: Counter[str], hosts: list[str]) -> str:
    done, failed, cancelled = (counts[state] for state in (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED))
    lines = [f"Run {run.number} of the plan {run.version.plan.title} {_outcome(run, counts)}.", ""]
    answer = run_answer(run)
    if answer.headline:
        lines.append(f"Result: {answer.headline}")
    lines += [f"Finding: {sentence}" for sentence in _news(run) if sentence not in answer.headline]
    if run.reason:
        lines.append(f"Reason: {run.reason}")
    lines.append(f"Trials: {done} done, {failed} failed, {cancelled} cancelled of {run.trial_count}")
    lines.append(f"Hosts: {', '.join(hosts)}")
    if run.started_at and run.ended_at:
        lines.append(f"Started: {_moment(run.started_at)}")
        took = duration((run.ended_at - run.started_at).total_seconds())
        lines.append(f"Ended: {_moment(run.ended_at)}, after {took}")
    return "\n".join(lines)


def _news(run: Run) -> list[str]:
    """The most important findings, without what a person has dismissed."""
    valid = [each for each in reviewed(run, run_answer(run).findings) if not each.is_dismissed]
    return [each.sentence for each in valid if each.kind is not FindingKind.UNCERTAIN][:FINDINGS]


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _detail(run: Run, counts: Counter[str], hosts: list[str]) -> dict[str, object]:
    ended = (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED)
    return {
        "run": run.number,
        "state": run.state,
        "reason_code": run.reason_code,
        "reason": run.reason,
        "headline": run_answer(run).headline,
        "findings": _news(run),
        "trials": {"total": run.trial_count, **{state.value: counts[state] for state in ended}},
        "hosts": hosts,
        "started_at": run.started_at.isoformat() if run.started_at else None,
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
    }
