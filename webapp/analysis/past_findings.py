"""Findings of a run against what was measured before: the previous run of its plan, and published tables of its drives.

Each is the comparison that Explore makes of both sides (`comparing.comparison_of`), so its claims are those of a
verdict on them. A verdict stands on the page of the run: targets that a baseline judges by the previous run are left
out.

| finding | rule |
| --- | --- |
| changed | a claimed difference, of the mean or of a point, beyond the margin |
| unchanged | the whole interval is within the margin |
| reference | the same against a published table; of single values, what `findings.effects` states, or the ratios |

Intervals cover the variation of the repeats, not that between runs. So the next experiment of a change is to measure
again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from math import log, log1p
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery
from msgspec import structs

from webapp.analysis.answer import DIFFERENCES, Comparison, DifferenceKind, Finding, FindingKind, Level, Mark
from webapp.analysis.claims import listed
from webapp.analysis.comparing import comparison_of, select
from webapp.analysis.default_questions import choose_for
from webapp.analysis.dimensions import MATCHED
from webapp.analysis.evidence import Pairs, RunFinding, Source, with_evidence
from webapp.analysis.experiments import next_experiment
from webapp.analysis.findings import findings
from webapp.analysis.findings.curves import span
from webapp.analysis.headline import differences
from webapp.analysis.question import CompareRefused, read_query
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import in_sentence, label_in_sentence
from webapp.plans.document import PlanDocument
from webapp.results.models import Origin
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import ResultQuery, target_points
from webapp.runs.models import Run, RunState

RUN = "run"  # the dimension that tells both sides apart
SINGLE = frozenset({"", "single"})  # layouts of a published table of one drive
MOST_NEXT = 50
_CONFOUNDED = DifferenceKind.CONFOUNDED
_AS_MEASURED = (FindingKind.EFFECT, FindingKind.TRADE_OFF, FindingKind.NO_EFFECT, FindingKind.RATIOS)


def previous_runs(runs: Iterable[Run], trusted: Run | None = None) -> dict[UUID, Run]:
    """For each ended run, the last completed valid run of its plan that ended before it started and shares a target.
    Only marks of whole runs change it; `trusted` counts as valid. Two queries."""
    valid = Q(invalid_reason="") | Q(pk=trusted.pk if trusted else None)
    of_targets = Run.targets.through.objects
    shared = of_targets.filter(run=OuterRef(OuterRef("pk"))).values("target")
    earlier = Run.objects.filter(
        valid, version__plan=OuterRef("version__plan"), state=RunState.DONE, ended_at__lte=OuterRef("started_at"),
        targets__in=shared,
    ).order_by("-ended_at", "-number")  # fmt: skip
    ended = Run.objects.filter(pk__in=[run.pk for run in runs], ended_at__isnull=False)
    previous = dict(ended.annotate(before=Subquery(earlier.values("pk")[:1])).values_list("pk", "before"))
    known = Run.objects.in_bulk({pk for pk in previous.values() if pk})
    return {run: known[before] for run, before in previous.items() if before}


def next_runs(run: Run) -> list[Run]:
    """The ended runs whose previous run is this one, or would be if it was valid, of the next ones at its targets."""
    later = Run.objects.filter(
        version__plan=run.version.plan_id, started_at__gte=run.ended_at, ended_at__isnull=False,
        targets__in=run.targets.all(),
    ).select_related("version__plan").distinct().order_by("number")[:MOST_NEXT]  # fmt: skip
    candidates = list(later)
    previous = previous_runs(candidates, trusted=run)
    return [each for each in candidates if each.pk in previous and previous[each.pk].pk == run.pk]


def past_findings(run: Run, previous: Run | None, source: Source, document: PlanDocument) -> Iterator[RunFinding]:
    """`document`: of the plan of the run."""
    with suppress(CompareRefused):
        if previous is not None:
            yield from _against_previous(run, previous, source, document)
    for imported, model in _references(run):
        with suppress(CompareRefused):
            yield from _against_reference(run, imported, model, source)


# ---- the previous run


def _against_previous(run: Run, previous: Run, source: Source, document: PlanDocument) -> Iterator[RunFinding]:
    sides = [set(map(str, each.targets.select_related("host"))) for each in (run, previous)]
    judged = {str(baseline.target) for baseline in previous.baselines.select_related("target__host")}
    names = sorted(set.intersection(*sides) - judged)
    of_both = ResultFilter(runs=(previous.number, run.number), targets=tuple(names))
    measured = target_points(ResultQuery.of(of_both)) if names else []
    if not measured:
        return
    chosen = choose_for(measured, series=(RUN,))
    at = [("target", name) for name in names] if any(side != set(names) for side in sides) else []
    question = [(RUN, str(previous.number)), *at, *chosen.pairs, ("baseline", str(previous.number))]
    made = _compared(
        [source.pair, *question],
        {str(run.number): f"Run {run.number}", str(previous.number): "the previous {}"},
    )
    for finding in claims(made):
        kind = FindingKind.CHANGED if finding.kind is FindingKind.DIFFERENCE else FindingKind.UNCHANGED
        finding = structs.replace(finding, kind=kind)
        yield with_evidence(
            source, question, made, finding, caution=_caution(made),
            experiment=next_experiment(
                made, finding, chosen, document, run=run.number, targets=tuple(names), questions=1
            ),
        )  # fmt: skip


def _compared(pairs: Pairs, names: Mapping[str, str]) -> Comparison:
    """`names` of the series in sentences, with a place for that in Explore. Raises CompareRefused."""
    selected = select(read_query(pairs))
    series = tuple(Level(each.key, names[each.key].format(each.text), None) for each in selected.grouped.series)
    return comparison_of(replace(selected, grouped=replace(selected.grouped, series=series)))


def _caution(made: Comparison) -> str:
    """What else differs between the runs: `Also different: kernel release.`"""
    labels = {label_in_sentence(each.name, each.label) for each in made.differs if each.kind is _CONFOUNDED}
    return f"Also different: {listed(sorted(labels))}." if labels else ""


def claims(made: Comparison) -> Iterator[Finding]:
    """Certain differences beyond the margin, and equality. `size`: of the largest certain difference."""
    for finding in differences(made):
        if finding.kind is FindingKind.DIFFERENCE:
            largest = max([finding.size, *_certain_points(made, finding)])
            if largest > log1p(made.margin):
                yield structs.replace(finding, size=largest)
        elif finding.kind is FindingKind.EQUAL:
            yield finding


def _certain_points(made: Comparison, finding: Finding) -> Iterator[float]:
    """|ln(ratio)| of each point of the finding that differs for certain."""
    for mark in finding.marks:
        for cell in made.panels[mark.panel].series[mark.series].cells:
            if cell.against_baseline and cell.against_baseline.conclusion in DIFFERENCES:
                yield abs(log(cell.against_baseline.ratio.value))


# ---- published tables


def _references(run: Run) -> list[tuple[int, str]]:
    """The published tables of single drives of the models that the run measured, at one target each: number of the
    import, and model. Without those that judge the run as its baseline."""
    targets = Counter(run.targets.exclude(model="").values_list("model", flat=True))
    models = [model for model, count in targets.items() if count == 1]
    if not models:
        return []
    published = Origin.objects.filter(imported__slug__isnull=False, drive__in=models)
    judging = run.version.plan.baselines.filter(target__in=run.targets.all()).exclude(imported=None)
    origins = published.exclude(imported__in=judging.values("imported")).order_by("imported__number", "drive")
    layouts: dict[tuple[int, str], set[str]] = {}
    for number, model, layout in origins.values_list("imported__number", "drive", "layout").distinct():
        layouts.setdefault((number, model), set()).add(layout)
    return [table for table, stated in layouts.items() if stated <= SINGLE]


def _against_reference(run: Run, imported: int, model: str, source: Source) -> Iterator[RunFinding]:
    """At the test points that the published table states, the run measured and nothing else differs in."""
    key = f"import-{imported}"
    question = [
        ("import", str(imported)), ("model", model), ("x", MATCHED), ("series", RUN), ("panel", "pattern"),
        ("baseline", key),
    ]  # fmt: skip
    names = {str(run.number): f"Run {run.number}", key: "the published table “{}”"}
    made = _compared([source.pair, *question], names)
    alone = structs.replace(made, differs=())  # of course host, tool and time differ: the list hides what is measured
    measured = [each for each in findings(alone, metric_named(made.metric)) if each.kind in _AS_MEASURED]
    for finding in list(claims(made)) or measured or list(_ratios(made)):
        finding = structs.replace(finding, kind=FindingKind.REFERENCE)
        yield with_evidence(source, question, made, finding)


def _ratios(made: Comparison) -> Iterator[Finding]:
    """The ratios in each chart, as measured."""
    parts, marks, logs = list[str](), list[Mark](), list[float]()
    for number, panel in enumerate(made.panels):
        for place, series in enumerate(panel.series):
            cells = [cell for cell in series.cells if cell.against_baseline and not series.is_baseline]
            ratios = sorted(log(cell.against_baseline.ratio.value) for cell in cells if cell.against_baseline)
            if ratios:
                parts.append(f"{panel.name} {span(ratios[0], ratios[-1])}".strip())
                marks.append(Mark(panel=number, series=place, first=cells[0].level, last=cells[-1].level))
                logs += ratios
    if parts:
        names = {each.is_baseline: each.name for each in made.panels[marks[0].panel].series}
        common = f"{len(logs)} common point{'' if len(logs) == 1 else 's'}"
        subject = in_sentence(made.metric_label)
        sentence = f"{names[False]} showed in {subject} against {names[True]}: {', '.join(parts)} ({common})."
        size = max(map(abs, logs))
        yield Finding(
            kind=FindingKind.RATIOS, sentence=sentence, single=True, size=size, marks=tuple(marks), about=made.metric
        )
