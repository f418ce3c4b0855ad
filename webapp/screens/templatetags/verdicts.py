"""Verdicts of runs against their baselines, on several pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import template

from webapp.analysis.evidence import RunFinding
from webapp.analysis.run_findings import findings_of
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.verdicts import LABELS, Outcome, Row
from webapp.plans.points import varying
from webapp.results.models import known
from webapp.runs.models import Run, RunState
from webapp.runs.states import ENDED_RUN_STATES
from webapp.schedules.models import Occurrence
from webapp.screens import point_words
from webapp.screens.trend.acceptance_form import ShownRow, level_label, limit_text, shown_row
from webapp.trends.selectors import Verdict, outcomes_on, verdicts_on
from webapp.trends.two_sides import UNSTATED

register = template.Library()

_STATES = {Outcome.FAILS: "failed", Outcome.UNCLEAR: "cancelled", Outcome.PASSES: "done"}


@dataclass(frozen=True)
class ShownVerdict:
    """`labels` are the varying factors, `rows` the most serious first."""

    verdict: Verdict
    labels: list[str]
    rows: list[ShownRow]
    summary: str
    tolerances: str
    levels: str  # chosen ones of a baseline that is an import
    ignored: str  # factors of such a baseline
    single_values: int  # rows that are judged without an interval


FINDINGS_DUE = "Findings are being made."  # the task makes them, also all again when the rules have changed


@register.simple_tag
def outcomes_of(listed: Iterable[Run | Occurrence]) -> Mapping[UUID, Outcome]:
    """Outcomes by id of the ended runs, or of the runs of occurrences, for `verdict_badge`."""
    runs = [
        run_or_occurrence if isinstance(run_or_occurrence, Run) else run_or_occurrence.run
        for run_or_occurrence in listed
    ]
    return outcomes_on([run for run in runs if run is not None])


@register.simple_tag
def results_of(listed: Iterable[Run]) -> Mapping[UUID, str]:
    """The first finding of each ended run, by its id: one sentence. Three queries."""
    ended = [run for run in listed if run.ended_at]
    findings = findings_of(ended)
    return {run.pk: _sentence(run, findings.get(known(run.number))) for run in ended}


def _sentence(run: Run, findings: Sequence[RunFinding] | None) -> str:
    """Why it failed, else its first finding that nobody dismissed."""
    if run.state not in (RunState.DONE, RunState.CANCELLED) and run.reason:
        return run.reason
    if findings is None:
        return FINDINGS_DUE
    return next((each.sentence for each in findings if not each.is_dismissed), "No findings")


@register.filter
def result_in(run: Run, sentences: Mapping[UUID, str]) -> str:
    return sentences.get(run.pk, "")


@register.inclusion_tag("screens/tags/verdict_badge.html")
def verdict_badge(outcome: Outcome | None) -> dict[str, str]:
    """Nothing for None."""
    return {"state": _STATES[outcome], "label": LABELS[outcome]} if outcome else {}


@register.inclusion_tag("screens/tags/verdict_badge.html")
def row_badge(row: Row) -> dict[str, str]:
    """The outcome of a row, or why the candidate has no number."""
    return {"state": "planned", "label": row.missing.capitalize()} if row.missing else verdict_badge(row.outcome)


@register.filter
def outcome_in(run: Run | None, outcomes: Mapping[UUID, Outcome]) -> Outcome | None:
    return outcomes.get(run.pk) if run else None


@register.inclusion_tag("screens/parts/verdict.html", takes_context=True)
def verdict_card(context: dict[str, Any], run: Run) -> dict[str, Any]:
    """The verdicts on an ended run, and links to its trends."""
    if run.state not in ENDED_RUN_STATES:
        return {}
    verdicts = [_shown(verdict) for verdict in verdicts_on(run)]
    judged = {shown.verdict.baseline.target_id for shown in verdicts}
    targets = list(run.targets.select_related("host"))
    return {
        "run": run,
        "verdicts": verdicts,
        "others": [target for target in targets if target.pk not in judged],
        "is_baseline": {baseline.target_id for baseline in run.baselines.all()},
        "request": context["request"],
    }


def _shown(verdict: Verdict) -> ShownVerdict:
    names = varying(verdict.points.values())
    order = list(Outcome)
    rows = sorted(verdict.rows, key=lambda row: (row.cell is not None, order.index(row.outcome)))
    counts = [f"{count} {_WORDS[each][count != 1]}" for each, count in verdict.counts.items() if count]
    tolerances = [(metric_named(key), percent) for key, percent in verdict.baseline.tolerances.items()]
    chosen = verdict.baseline.levels.items()
    return ShownVerdict(
        verdict,
        [point_words.label(name) for name in names],
        [shown_row(row, verdict.points, names) for row in rows],
        ", ".join(counts) or f"not judged. {verdict.problem}".removesuffix("."),
        ", ".join(f"{metric.label} {limit_text(metric, percent)}" for metric, percent in tolerances),
        ", ".join(f"{level_label(name)} {text}" for name, text in chosen),
        ", ".join(_IGNORED.get(name) or point_words.label(name) for name in verdict.baseline.ignored),
        sum(row.single_values for row in rows),
    )


_IGNORED = {UNSTATED: "all that only one side states"}
_WORDS = {
    Outcome.FAILS: ("row fails", "rows fail"),
    Outcome.UNCLEAR: ("row is unclear", "rows are unclear"),
    Outcome.PASSES: ("row passes", "rows pass"),
}
