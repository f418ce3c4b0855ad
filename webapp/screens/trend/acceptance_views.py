"""The page Acceptance test: a candidate passes or fails row by row against a baseline. The address holds everything."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from webapp.analysis.verdicts import LABELS, Outcome, Row
from webapp.core.errors import Refusal
from webapp.core.table_files import Column, Kind, Table, file_response
from webapp.hosts.selectors import BESIDE
from webapp.plans.factors import FACTORS
from webapp.plans.models import Plan
from webapp.plans.points import in_order, varying
from webapp.results.metrics import Missing
from webapp.results.reading.filter import write_level
from webapp.results.reading.rows import TEST
from webapp.runs.models import Run
from webapp.screens import point_words
from webapp.screens.access import page
from webapp.screens.trend.acceptance_form import (
    PREFIX,
    SIDES,
    AcceptanceForm,
    AcceptanceQuestion,
    AcceptanceSide,
    acceptance_side,
    differing_levels,
    form_of,
    imported_in,
    read_address,
    read_tolerances,
    run_in,
    shown_row,
    side_text,
    tolerances,
    without_baseline,
    write_address,
)
from webapp.trends.two_sides import TARGET, UNSTATED, TwoSides, judge_read, levels_of

# The rows of an acceptance test as a table for files, in stored units.

_NUMBERS = ("Baseline", "Candidate", "Ratio", "Ratio 95 % CI low", "Ratio 95 % CI high", "Tolerance [%]", "Limit")


def verdict_table(judged: TwoSides) -> Table:
    """All factors of the rows are columns; a mean over several cells has no levels. Each row states what the verdict
    leaves open, because a file is read without its page."""
    points = [judged.places[row.cell[0]].point for row in judged.rows if row.cell]
    names = in_order({name for point in points for name in point})
    columns = [
        *(Column(heading) for heading in ("Verdict", "Metric", "Unit", "Target", *names, "Direction")),
        *(Column(heading, Kind.NUMBER) for heading in _NUMBERS),
        Column("Single values", Kind.SWITCH),
        Column("Reason"),
        Column("Limits"),
    ]
    return Table(columns, _rows(judged, names))


def _rows(judged: TwoSides, names: list[str]) -> Iterator[tuple[object, ...]]:
    limits = " ".join(judged.limits) or None
    for row in judged.rows:
        ratio = row.ratio
        yield (
            row.missing.capitalize() if row.missing else LABELS[row.outcome], row.metric.label, row.metric.unit,
            *_place(row, judged, names), row.baseline, row.value,
            ratio.value if ratio else None, ratio.low if ratio else None, ratio.high if ratio else None,
            row.tolerance, row.limit, row.single_values, row.why or None, limits,
        )  # fmt: skip


def _place(row: Row, judged: TwoSides, names: list[str]) -> tuple[str | None, ...]:
    """Target, levels and direction."""
    if row.cell is None:
        return (None, *(None for _ in names), f"mean over {row.over}")
    key, direction = row.cell
    place = judged.places[key]
    levels = (_level(name, place.point[name]) if name in place.point else None for name in names)
    return (place.target or None, *levels, direction)


def _level(name: str, value: object) -> str:
    return write_level(name, value) if name in FACTORS else str(value)  # type: ignore[arg-type]  # a point's level


@dataclass(frozen=True)
class Counts:
    """Rows by outcome. `not_measured`, `no_value` and `too_few` are parts of the unclear ones, `single_values` of the
    others."""

    fails: int
    passes: int
    unclear: int
    not_measured: int
    no_value: int
    too_few: int
    single_values: int


@page
def acceptance_page(request: HttpRequest) -> HttpResponse:
    question = read_address(request.GET)
    sides: Sequence[AcceptanceSide] = ()
    try:
        sides = _sides(question)
        judged = _judge(question, sides) if sides else None
    except Refusal as refusal:
        form = _as_typed(form_of(question, sides), question)
        return render(request, "screens/acceptance.html", {"form": form, "refusal": str(refusal)}, status=422)
    form = form_of(question, sides)
    context: dict[str, object] = {"form": form}
    if judged:
        context |= _shown(request, form, judged)
        context["notes"] = list(_notes(request, question, form, sides, judged))
        context["judges"] = _judges(question, sides, form)
    return render(request, "screens/acceptance.html", context)


@page
def acceptance_file(request: HttpRequest) -> HttpResponseBase:
    """CSV, in stored units."""
    question = read_address(request.GET)
    try:
        sides = _sides(question)
        if not sides:
            raise Refusal("filter_missing", "Choose a baseline and a candidate.")
        judged = _judge(question, sides)
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    return file_response(verdict_table(judged), "sweetspot-acceptance", "csv")


def _sides(question: AcceptanceQuestion) -> tuple[AcceptanceSide, ...]:
    """Both sides, or nothing while one is not chosen. Raises Refusal."""
    if not all(side.source for side in question.sides):
        return ()
    sides = tuple(map(acceptance_side, question.sides))
    for side in sides:
        if not side.results.rows:
            raise Refusal("no_results", f"The {side.chosen.name} has no valid results. Choose other results.")
    return sides


def _judge(question: AcceptanceQuestion, sides: Sequence[AcceptanceSide]) -> TwoSides:
    """Raises Refusal."""
    baseline, candidate = sides
    typed = {f"{PREFIX}{metric.key}": text for metric, text in tolerances(question, sides)}
    if not typed:
        raise Refusal("no_results", "The baseline and the candidate have no metric in common. Choose other results.")
    return judge_read(
        baseline.results, candidate.results, read_tolerances(typed),
        ignored=question.ignored, single_values=question.single_values,
    )  # fmt: skip


@dataclass(frozen=True)
class Judges:
    """Whose runs the baseline can judge from now on: `test` is the address of this acceptance test."""

    plan: Plan
    target: str
    test: str


def _judges(question: AcceptanceQuestion, sides: Sequence[AcceptanceSide], form: AcceptanceForm) -> Judges | None:
    """None unless the baseline is an import, and the candidate one run at one target alone."""
    baseline, candidate = question.sides
    number = run_in(candidate)
    if imported_in(baseline) is None or number is None:
        return None
    targets = {row.target_name for row in sides[1].results.rows}
    if len(targets) != 1 or any(BESIDE in name for name in targets):
        return None
    chosen_sides = [replace(side.chosen, levels=side.levels) for side in sides]
    typed = [(field.metric.key, field.text) for field in form.fields]
    test = write_address(chosen_sides, question.ignored, typed, single_values=question.single_values)
    run = Run.objects.select_related("version__plan").get(number=number)
    return Judges(run.version.plan, targets.pop(), test)


def _as_typed(form: AcceptanceForm, question: AcceptanceQuestion) -> AcceptanceForm:
    fields = [replace(field, text=question.typed.get(field.metric.key, field.text)) for field in form.fields]
    return replace(form, fields=tuple(fields))


@dataclass(frozen=True)
class Note:
    """What a reader of the rows has to know. `link` leads to the page with the address `query`; "" without one."""

    text: str
    link: str = ""
    query: str = ""


MAX_NAMED = 6  # factors


def _notes(
    request: HttpRequest,
    question: AcceptanceQuestion,
    form: AcceptanceForm,
    sides: Sequence[AcceptanceSide],
    judged: TwoSides,
) -> Iterator[Note]:
    counts = _counts(judged.rows)
    if counts.single_values:
        have, say = ("has", "It says") if counts.single_values == 1 else ("have", "They say")
        yield Note(
            f"{_count(counts.single_values, 'row')} {have} no interval: the tolerance alone decides. {say} on which "
            "side of the limit the measured values are, not that the systems differ. A second measurement may have "
            "another outcome."
        )
    if counts.too_few:
        text = f"{_count(counts.too_few, 'row')} {_are(counts.too_few)} unclear: a side has fewer than 3 repeats."
        query = _with(request, lambda address: address.update({"single_values": "1"}))
        yield Note(text, "Judge these values by the tolerance alone", query)
    if form.unstated and not any(row.baseline is not None and row.value is not None for row in judged.rows):
        count, more = len(form.unstated), " and others" if len(form.unstated) > MAX_NAMED else ""
        text = (
            f"{_count(count, 'factor')} {_are(count)} stated by one side only: "
            f"{', '.join(form.unstated[:MAX_NAMED])}{more}. Results at different factors are in different rows."
        )
        query = _with(request, lambda address: address.appendlist("ignore", UNSTATED))
        yield Note(text, "Ignore factors that only one side states", query)
    if levels := differing_levels(sides):
        yield Note(f"A level was chosen, so the rows compare different levels: {', '.join(levels)}.")
    if metrics := without_baseline(question, form):
        these = "this metric" if len(metrics) == 1 else "these metrics"
        yield Note(f"Not judged: {', '.join(metrics)}. The baseline has no values of {these}.")
    if judged.ignored:
        labels = ", ".join(point_words.label(name) for name in judged.ignored)
        yield Note(f"Ignored: {labels}. The sides may differ in these factors.")
    if count := judged.shared_results:
        yield Note(
            f"{_count(count, 'result')} {_are(count)} on both sides, and left out of the side with more results."
        )
    targets = [levels_of(side.results.rows, TARGET) for side in sides]
    if any(place.target for place in judged.places.values()) and not set.intersection(*targets):
        yield Note(
            "The sides have no target in common, so no row has results of both. Choose one target of each side above: "
            "then the rows are compared whatever the target is."
        )
    if count := judged.new_cells:
        it = "It is" if count == 1 else "They are"
        yield Note(f"The candidate has {_count(count, 'cell')} that the baseline does not have. {it} not judged.")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _with(request: HttpRequest, change: Callable[[QueryDict], None]) -> str:
    """The query of this page after a change."""
    address = request.GET.copy()
    change(address)
    return address.urlencode()


def _shown(request: HttpRequest, form: AcceptanceForm, judged: TwoSides) -> Mapping[str, object]:
    places = {row.cell[0]: judged.places[row.cell[0]] for row in judged.rows if row.cell}
    points = {key: place.point for key, place in places.items()}
    names = [name for name in varying(points.values()) if name != TEST]
    names += [TEST] if any(TEST in point for point in points.values()) else []
    target = {key: place.target for key, place in places.items()}
    rows = [shown_row(row, points, names, target[row.cell[0]] if row.cell else "") for row in judged.rows]
    return {
        "judged": judged,
        "counts": _counts(judged.rows),
        "sides": [side_text(form, name) for name in SIDES],
        "labels": [point_words.label(name).capitalize() for name in names],
        "by_target": any(target.values()),
        "rows": rows,
        "csv": f"{reverse('acceptance_csv')}?{request.GET.urlencode()}",
    }


def _counts(rows: Sequence[Row]) -> Counts:
    by = Counter(row.outcome for row in rows)
    missing = Counter(row.missing for row in rows if row.missing)
    return Counts(
        by[Outcome.FAILS], by[Outcome.PASSES], by[Outcome.UNCLEAR] - missing.total(),
        missing[Missing.NOT_MEASURED], missing[Missing.NO_VALUE],
        sum(row.too_few for row in rows), sum(row.single_values for row in rows),
    )  # fmt: skip
