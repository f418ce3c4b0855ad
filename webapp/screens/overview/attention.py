"""What needs a person: the heading of the overview, its cards, and the line below the heading."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from webapp.analysis.answer import FindingKind
from webapp.analysis.evidence import RunFinding
from webapp.analysis.question import MARGIN
from webapp.analysis.run_findings import findings_of
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.verdicts import Outcome
from webapp.analysis.words import PERCENT, shown
from webapp.results.models import KernelLine
from webapp.runs.models import Run, RunState
from webapp.schedules.models import Occurrence, OccurrenceState
from webapp.schedules.selectors import missed_since
from webapp.screens.findings import as_heading
from webapp.screens.hosts.views import HostRow
from webapp.screens.trend.charts import Scale, Sparkline, sparkline
from webapp.screens.trend.claims import change_of, changes, noun, number, sentence, trend_address, unchanged
from webapp.trends.selectors import outcomes_at
from webapp.trends.summaries import Row, State, worst_by_target

CARDS = 3
PHRASES = 3  # of the heading
SINCE = timedelta(hours=24)
LOOK = timedelta(days=7)  # for which a run needs a look that fails, or after which a drive stays slower
MOST_RUNS = 500
PICTURE = (148, 60)  # px
WORSE = (State.FROZE, State.SLOWER, State.WORSE)


@dataclass(frozen=True)
class Card:
    """`tone` is a class of CSS. `at` is shown after the title or, in `detail`, before the words."""

    tone: str
    sign: str
    kind: str
    title: str
    address: str
    detail: str = ""
    at: datetime | None = None
    spark: Sparkline | None = None


@dataclass(frozen=True)
class Situation:
    """`more` are the cards that do not fit."""

    heading: str
    lead: str
    cards: tuple[Card, ...]
    more: tuple[Card, ...]


def situation(trends: Sequence[Row], hosts: Sequence[HostRow], scale: Scale) -> Situation:
    """`trends`: all of them; the worst of each target is shown. At most 16 queries."""
    rows = worst_by_target(trends)
    since = timezone.now() - SINCE
    away = [each for each in hosts if each.presence.state == "lost"]
    missed, late, failed = list(missed_since(since)[:100]), list(_late()[:100]), list(_failed(since)[:100])
    errors = list(_with_storage_errors(since)[:100])
    recent = list(_recent(trends))
    losses, failing = _losses(trends, recent), _failing(trends, recent)
    worse = [loss for loss in losses if loss.is_newest]
    lasting = [loss for loss in losses if not loss.is_newest]
    phrases = [
        *changes(rows, WORSE),
        *_counted(len(worse), "run was worse than the run before it", "runs were worse than the runs before them"),
        *_counted(len(lasting), "drive is still slower than before", "drives are still slower than before"),
        *_counted(len(failing), "run fails against its baseline", "runs fail against their baselines"),
        *_counted(len(away), "host is away", "hosts are away"),
        *_counted(len(errors), "run had storage errors", "runs had storage errors"),
        *_counted(len(failed), "run failed", "runs failed"),
        *_counted(len(missed), "run was missed", "runs were missed"),
        *_counted(len(late), "run is late", "runs are late"),
    ]
    changed = [row for state in WORSE for row in rows if row.summary.state is state]
    groups: list[list[Card]] = [
        [_of_trend(row, scale) for row in changed],
        [_of_finding(loss.finding) for loss in worse],
        [_of_loss(loss) for loss in lasting],
        [_of_failing(row) for row in failing],
        [_of_host(row) for row in away],
        [_of_run(run, "Errors", "storage errors in the kernel log") for run in errors],
        [_of_run(run, "Failed", "no trial was completed") for run in failed],
        [_of_occurrence(each, "Missed", each.due_at) for each in missed],
        [_of_occurrence(each, "Late", each.late_at) for each in late],
    ]
    cards = _chosen(groups)
    return Situation(
        heading=_heading(phrases, rows),
        lead=_lead(rows, {row.host.pk for row in away}),
        cards=tuple(cards[:CARDS]),
        more=tuple(cards[CARDS:]),
    )


def _counted(count: int, one: str, several: str) -> list[str]:
    return [f"{number(count)} {one if count == 1 else several}"] if count else []


def _heading(phrases: Sequence[str], rows: Sequence[Row]) -> str:
    if phrases:
        return sentence(phrases[:PHRASES])
    known = [row for row in rows if row.summary.state is not State.SHORT]
    return unchanged(known, "as fast as before") if known else "Nothing needs you"


def _lead(rows: Sequence[Row], away: set[object]) -> str:
    """How many others are well."""
    known = [row for row in rows if row.summary.state is not State.SHORT]
    well = [row for row in known if row.summary.state not in WORSE and row.target.host_id not in away]
    if not known:
        return f"{sentence([number(len(rows))])} {noun(rows, len(rows))} with too few runs for a trend." if rows else ""
    if len(well) == len(known):
        return ""
    others = "The other" if len(well) == 1 else f"The other {len(well)}"
    if any(row.summary.state is State.UNCERTAIN for row in well):
        return f"{others} {'has' if len(well) == 1 else 'have'} no certain change for the worse."
    faster = any(row.summary.state is State.FASTER for row in well)
    end = "as fast as before or faster" if faster else "as fast as before"
    return f"{others} {'is' if len(well) == 1 else 'are'} {end}." if well else ""


def _chosen(groups: Iterable[list[Card]]) -> list[Card]:
    """All cards if they fit. Else the first of each kind comes before the second of any."""
    listed = [group for group in groups if group]
    if sum(map(len, listed)) <= CARDS:
        return [card for group in listed for card in group]
    ranked = [(place, rank, card) for rank, group in enumerate(listed) for place, card in enumerate(group)]
    return [card for _, _, card in sorted(ranked, key=lambda each: each[:2])]


def _of_trend(row: Row, scale: Scale) -> Card:
    spark = sparkline(row.summary, scale, width=PICTURE[0], height=PICTURE[1])
    address = trend_address(row.plan, row.target)
    if row.summary.state is State.FROZE:
        return Card("froze", "‖", "Froze", str(row.target), address, f"in run {row.newest_run}", spark=spark)
    step = row.summary.step
    title = f"{row.target} {shown(step.ratio, PERCENT)}" if step else str(row.target)
    detail = change_of(step).cause if step else ""
    if row.summary.state is State.WORSE:  # the trend has no step yet; the run says what became worse
        address = reverse("run", args=[row.newest_run])
        detail = ": ".join(filter(None, (f"in run {row.newest_run}", detail)))
        return Card("slower", "▼", "Worse", title, address, detail, spark=spark)
    return Card("slower", "▼", "Slower", title, address, detail, step.at if step and not step.over else None, spark)


def _of_finding(finding: RunFinding) -> Card:
    address = reverse("run", args=[finding.run])
    detail = ", ".join(filter(None, (as_heading(finding.claim).partition(";")[0], finding.doubt.partition(":")[0])))
    return Card("slower", "▼", "Worse", f"Run {finding.run}", address, detail)


def _of_loss(loss: "Loss") -> Card:
    doubt = loss.finding.doubt.partition(":")[0]
    return Card(
        "slower", "▼", "Worse", loss.target, reverse("run", args=[loss.finding.run]),
        ", ".join(filter(None, (loss.words, doubt))),
    )  # fmt: skip


def _of_failing(row: Row) -> Card:
    address = reverse("run", args=[row.newest_run])
    return Card("slower", "✕", "Fails", str(row.target), address, f"run {row.newest_run} fails against its baseline")


def _of_host(row: HostRow) -> Card:
    words = f"{row.listed} target{'s' if row.listed != 1 else ''}"
    return Card("away", "○", "Away", row.host.slug, reverse("host", args=[row.host.slug]), words, row.host.last_seen_at)


def _of_run(run: Run, kind: str, detail: str) -> Card:
    return Card("failed", "✕", kind, f"Run {run.number}", reverse("run", args=[run.number]), detail, run.ended_at)


def _of_occurrence(occurrence: Occurrence, kind: str, at: datetime | None) -> Card:
    host = f" on {occurrence.host.slug}" if occurrence.host else ""
    address = reverse("schedule", args=[occurrence.schedule_id])
    return Card("away", "○", kind, f"{occurrence.schedule.name}{host}", address, at=at)


def _recent(trends: Sequence[Row]) -> QuerySet[Run]:
    """Valid runs of these trends that need a look if they are worse, the newest first."""
    plans = {row.plan.pk for row in trends}
    ended = Run.objects.filter(version__plan__in=plans, ended_at__gte=timezone.now() - LOOK, invalid_reason="")
    return ended.select_related("version").order_by("-ended_at")[:MOST_RUNS]


@dataclass(frozen=True)
class Loss:
    """A change for the worse that no later run of its trend took back. `finding` is the first that states it; `change`
    is that of the logarithm up to the newest run, with losses below 0."""

    target: str
    finding: RunFinding
    change: float
    is_newest: bool  # the newest run has it, and no run before

    @property
    def words(self) -> str:
        """“73 % slower since run 2”"""
        metric = metric_named(self.finding.picture.metric) if self.finding.picture else None
        since = f"since run {self.finding.run}"
        if metric and metric.lower_is_better:
            return f"{metric.label} {shown(math.exp(-self.change), PERCENT)} {since}"
        return f"{shown(math.exp(self.change), PERCENT).lstrip('−')} slower {since}"


def _losses(trends: Sequence[Row], recent: Sequence[Run]) -> list[Loss]:
    """Of trends with too few runs to judge their newest run themselves. A run at several targets counts once."""
    short = [row for row in trends if row.summary.state is State.SHORT]
    found = findings_of(recent) if short else {}
    losses: dict[tuple[object, int], Loss] = {}
    for row in short:
        findings = [
            finding
            for run in reversed(recent)
            if run.version.plan_id == row.plan.pk
            for finding in found.get(run.number or 0, ())
            if str(row.target) in finding.targets
        ]
        if loss := _loss(row, findings):
            losses.setdefault((row.plan.pk, loss.finding.run), loss)
    return list(losses.values())


def _loss(row: Row, findings: Sequence[RunFinding]) -> Loss | None:
    """`findings`: of the runs of the trend, the oldest first. The first change of each run counts, and of later runs
    that of the same metric."""
    first, total, run = None, 0.0, 0
    for finding in findings:
        change = _change(finding)
        metric = finding.picture.metric if finding.picture else ""
        if change is None or finding.run == run or (first and first.picture and first.picture.metric != metric):
            continue
        run = finding.run
        if first is None and change > 0:
            continue
        first, total = first or finding, total + change
        if total > -math.log1p(MARGIN):
            first, total = None, 0.0
    return Loss(str(row.target), first, total, first.run == row.newest_run) if first else None


def _change(finding: RunFinding) -> float | None:
    """The mean logarithm of the ratios that are drawn as evidence of a change, with losses below 0."""
    picture = finding.picture
    if finding.kind is not FindingKind.CHANGED or finding.is_dismissed or not picture:
        return None
    marked = (line.values[line.first : line.last + 1] for line in picture.lines
              if line.first is not None and line.last is not None)  # fmt: skip
    logs = [math.log(value) for values in marked for value in values if value]
    sign = -1 if metric_named(picture.metric).lower_is_better else 1
    return sign * fmean(logs) if logs else None


def _failing(trends: Sequence[Row], recent: Sequence[Run]) -> list[Row]:
    """Trends whose newest run fails against the baseline of its target."""
    newest = {row.newest_run for row in trends}
    runs = {run.number: run for run in recent if run.number in newest}
    outcomes = outcomes_at(runs.values())
    return [
        row
        for row in trends
        if row.newest_run in runs and outcomes.get((runs[row.newest_run].pk, row.target.pk)) is Outcome.FAILS
    ]


def _late() -> QuerySet[Occurrence]:
    late = Occurrence.objects.filter(state=OccurrenceState.STARTED, late_at__isnull=False)
    return late.select_related("schedule", "host").order_by("late_at")


def _failed(since: datetime) -> QuerySet[Run]:
    """Runs without any result that were not run again."""
    return Run.objects.filter(state=RunState.FAILED, ended_at__gte=since, invalid_reason="", again=None).order_by(
        "-ended_at"
    )


def _with_storage_errors(since: datetime) -> QuerySet[Run]:
    lines = KernelLine.objects.filter(attempt__run__ended_at__gte=since, elsewhere=False)
    return Run.objects.filter(pk__in=lines.values("attempt__run"), invalid_reason="").order_by("-ended_at")
