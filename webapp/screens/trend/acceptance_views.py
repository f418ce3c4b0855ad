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
from webapp.core.table_files import Column, Kind, Table
from webapp.core.table_files.response import file_response
from webapp.hosts.selectors import BESIDE
from webapp.plans.factors import FACTORS
from webapp.plans.models import Plan
from webapp.plans.points import varying
from webapp.results.metrics import Missing
from webapp.results.reading.filter import write_level
from webapp.results.reading.rows import TEST
from webapp.runs.models import Run
from webapp.screens import points as words
from webapp.screens.access import page
from webapp.screens.trend.acceptance_form import (
    PREFIX,
    SIDES,
    AcceptanceForm,
    Asked,
    FoundSide,
    ToleranceField,
    apart,
    find_side,
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


def verdict_table(found: TwoSides) -> Table:
    """All factors of the rows are columns; a mean over several cells has no levels. Each row states what the verdict
    leaves open, because a file is read without its page."""
    points = [found.places[row.cell[0]].point for row in found.rows if row.cell]
    names = words.in_order({name for point in points for name in point})
    columns = [
        *(Column(heading) for heading in ("Verdict", "Metric", "Unit", "Target", *names, "Direction")),
        *(Column(heading, Kind.NUMBER) for heading in _NUMBERS),
        Column("Single values", Kind.SWITCH),
        Column("Reason"),
        Column("Limits"),
    ]
    return Table(columns, _rows(found, names))


def _rows(found: TwoSides, names: list[str]) -> Iterator[tuple[object, ...]]:
    limits = " ".join(found.limits) or None
    for row in found.rows:
        ratio = row.ratio
        yield (
            row.missing.capitalize() if row.missing else LABELS[row.outcome], row.metric.label, row.metric.unit,
            *_place(row, found, names), row.baseline, row.value,
            ratio.value if ratio else None, ratio.low if ratio else None, ratio.high if ratio else None,
            row.tolerance, row.limit, row.single_values, row.why or None, limits,
        )  # fmt: skip


def _place(row: Row, found: TwoSides, names: list[str]) -> tuple[str | None, ...]:
    """Target, levels and direction."""
    if row.cell is None:
        return (None, *(None for _ in names), f"mean over {row.cells} cells, {row.direction}".removesuffix(", "))
    key, direction = row.cell
    place = found.places[key]
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
    asked = read_address(request.GET)
    found: Sequence[FoundSide] = ()
    try:
        found = _find(asked)
        judged = _judge(asked, found) if found else None
    except Refusal as refusal:
        form = _as_typed(form_of(asked, found), asked)
        return render(request, "screens/acceptance.html", {"form": form, "refusal": str(refusal)}, status=422)
    form = form_of(asked, found)
    context: dict[str, object] = {"form": form}
    if judged:
        context |= _shown(request, form, judged)
        context |= {"notes": list(_notes(request, asked, form, found, judged)), "judges": _judges(asked, found, form)}
    return render(request, "screens/acceptance.html", context)


@page
def acceptance_file(request: HttpRequest) -> HttpResponseBase:
    """CSV, in stored units."""
    asked = read_address(request.GET)
    try:
        found = _find(asked)
        if not found:
            raise Refusal("filter_missing", "Choose a baseline and a candidate.")
        judged = _judge(asked, found)
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    return file_response(verdict_table(judged), "sweetspot-acceptance", "csv")


def _find(asked: Asked) -> tuple[FoundSide, ...]:
    """Both sides, or nothing while one is not chosen. Raises Refusal."""
    if not all(side.source for side in asked.sides):
        return ()
    found = tuple(map(find_side, asked.sides))
    for one in found:
        if not one.side.rows:
            raise Refusal("no_results", f"The {one.asked.name} has no valid results. Choose other results.")
    return found


def _judge(asked: Asked, found: Sequence[FoundSide]) -> TwoSides:
    """Raises Refusal."""
    theirs, mine = found
    typed = {f"{PREFIX}{metric.key}": text for metric, text in tolerances(asked, found)}
    if not typed:
        raise Refusal("no_results", "The baseline and the candidate have no metric in common. Choose other results.")
    try:
        wanted = read_tolerances(typed)
    except ValueError as error:
        raise Refusal("tolerance_refused", str(error)) from error
    return judge_read(theirs.side, mine.side, wanted, ignored=asked.ignored, single_values=asked.single_values)


@dataclass(frozen=True)
class Judges:
    """Whose runs the baseline can judge from now on: `test` is the address of this acceptance test."""

    plan: Plan
    target: str
    test: str


def _judges(asked: Asked, found: Sequence[FoundSide], form: AcceptanceForm) -> Judges | None:
    """None unless the baseline is an import, and the candidate one run at one target alone."""
    theirs, mine = asked.sides
    number = run_in(mine)
    if imported_in(theirs) is None or number is None:
        return None
    targets = {row.target_name for row in found[1].side.rows}
    if len(targets) != 1 or any(BESIDE in name for name in targets):
        return None
    sides = [replace(one.asked, levels=one.levels) for one in found]
    typed = [(field.metric.key, field.text) for field in form.fields]
    test = write_address(sides, asked.ignored, typed, single_values=asked.single_values)
    run = Run.objects.select_related("version__plan").get(number=number)
    return Judges(run.version.plan, targets.pop(), test)


def _as_typed(form: AcceptanceForm, asked: Asked) -> AcceptanceForm:
    fields = tuple(
        ToleranceField(one.metric, one.name, asked.typed.get(one.metric.key, one.text)) for one in form.fields
    )
    return replace(form, fields=fields)


def _common_targets(sides: Sequence[FoundSide]) -> set[str]:
    return set.intersection(*(levels_of(one.side.rows, TARGET) for one in sides))


@dataclass(frozen=True)
class Note:
    """What a reader of the rows has to know. `link` leads to the page with the address `query`; "" without one."""

    text: str
    link: str = ""
    query: str = ""


MAX_NAMED = 6  # factors


def _notes(
    request: HttpRequest, asked: Asked, form: AcceptanceForm, sides: Sequence[FoundSide], found: TwoSides
) -> Iterator[Note]:
    counts = _counts(found.rows)
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
    if form.unstated and not any(row.baseline is not None and row.value is not None for row in found.rows):
        count, more = len(form.unstated), " and others" if len(form.unstated) > MAX_NAMED else ""
        text = (
            f"{_count(count, 'factor')} {_are(count)} stated by one side only: "
            f"{', '.join(form.unstated[:MAX_NAMED])}{more}. Results at different factors are in different rows."
        )
        query = _with(request, lambda address: address.appendlist("ignore", UNSTATED))
        yield Note(text, "Ignore factors that only one side states", query)
    if levels := apart(sides):
        yield Note(f"A level was chosen, so the rows compare different levels: {', '.join(levels)}.")
    if metrics := without_baseline(asked, form):
        these = "this metric" if len(metrics) == 1 else "these metrics"
        yield Note(f"Not judged: {', '.join(metrics)}. The baseline has no values of {these}.")
    if found.ignored:
        labels = ", ".join(words.label(name) for name in found.ignored)
        yield Note(f"Ignored: {labels}. The sides may differ in these factors.")
    if count := found.shared_results:
        yield Note(
            f"{_count(count, 'result')} {_are(count)} on both sides, and left out of the side with more results."
        )
    if any(place.target for place in found.places.values()) and not _common_targets(sides):
        yield Note(
            "The sides have no target in common, so no row has results of both. Choose one target of each side above: "
            "then the rows are compared whatever the target is."
        )
    if count := found.new_cells:
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


def _shown(request: HttpRequest, form: AcceptanceForm, found: TwoSides) -> Mapping[str, object]:
    places = {row.cell[0]: found.places[row.cell[0]] for row in found.rows if row.cell}
    points = {key: place.point for key, place in places.items()}
    names = [name for name in varying(points.values()) if name != TEST]
    names += [TEST] if any(TEST in point for point in points.values()) else []
    target = {key: place.target for key, place in places.items()}
    rows = [shown_row(row, points, names, target[row.cell[0]] if row.cell else "") for row in found.rows]
    return {
        "judged": found,
        "counts": _counts(found.rows),
        "sides": [side_text(form, name) for name in SIDES],
        "labels": [words.label(name).capitalize() for name in names],
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
