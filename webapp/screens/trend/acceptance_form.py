"""Acceptance tests: the address with two sides and tolerances, its form, and the rows of a verdict in words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from webapp.analysis.dimensions import label_of_fact
from webapp.analysis.trial_metrics import COMPARED, known_metric, metrics_of
from webapp.analysis.verdicts import Row
from webapp.analysis.words import PERCENT, interval, shown
from webapp.core import formatting
from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.plans.factors import FACTORS
from webapp.plans.models import Plan
from webapp.plans.points import in_order, varying
from webapp.results.metrics import Metric
from webapp.results.models import Import
from webapp.results.reading.content import Point
from webapp.results.reading.filter import FACTOR_PREFIX, NOT_SET
from webapp.results.reading.rows import ResultRow
from webapp.runs.models import Run
from webapp.runs.states import ENDED_RUN_STATES
from webapp.screens import point_words
from webapp.screens.choices import Choice, Group, Option
from webapp.screens.results.picks import Pick
from webapp.trends.models import Baseline
from webapp.trends.run_values import ended_runs
from webapp.trends.selectors import NOT_JUDGED, judged_metrics
from webapp.trends.two_sides import (
    DEFAULT_TOLERANCES,
    LABEL_PREFIX,
    TARGET,
    UNSTATED,
    Side,
    at_levels,
    level_of,
    levels_of,
    read_side,
    unstated,
)

# The rows of a verdict in words, for cards and the page Acceptance test.

MAX_DIGITS = 8


@dataclass(frozen=True)
class ShownRow:
    """`change` and `interval` are in percent; `ratio` is the same as ×0.950."""

    row: Row
    target: str
    levels: list[str]
    direction: str
    baseline: str
    value: str
    ratio: str
    change: str
    interval: str
    limit: str


def shown_row(row: Row, points: Mapping[str, Point], names: Sequence[str], target: str = "") -> ShownRow:
    """`points` has the point of each cell; `names` are the factors that are shown."""
    key, direction = row.cell or ("", "")
    ratio = row.ratio
    return ShownRow(
        row,
        target,
        point_words.levels(points[key], names) if key else [],
        direction,
        row.metric.format(row.baseline),
        row.metric.format(row.value),
        _ratio_text(ratio.value, row.limit) if ratio else "–",
        _change_text(ratio.value, row.limit) if ratio else "–",
        (interval(ratio, PERCENT) if ratio else "") or "–",
        limit_text(row.metric, row.tolerance),
    )


def _ratio_text(ratio: float, limit: float) -> str:
    """×0.947: a decimal more than elsewhere, because a row fails at ×0.949 and passes at ×0.950. ×0.94996 has as many
    as tell it from the limit."""
    if ratio >= 10:
        return formatting.ratio(ratio)
    digits = next((n for n in range(3, MAX_DIGITS) if round(ratio, n) != round(limit, n)), 3)
    return f"×{ratio:.{digits}f}"


def _change_text(ratio: float, limit: float) -> str:
    """−25.04 %, if the limit is −25 %: else as many digits as elsewhere."""
    change = shown(ratio, PERCENT)
    if change != shown(limit, PERCENT):
        return change
    texts = [tuple(f"{100 * (value - 1):+.{n}f}" for value in (ratio, limit)) for n in range(1, MAX_DIGITS)]
    longer = next((ratio_text for ratio_text, limit_text in texts if ratio_text != limit_text), "")
    return f"{longer.replace('-', '−')} %" if longer else change


def limit_text(metric: Metric, tolerance: float) -> str:
    """The tolerance with the sign of a change for the worse: −5 %."""
    return f"{'+' if metric.lower_is_better else '−'}{tolerance:g} %"


# The address of an acceptance test: `baseline=import=16&candidate=import=1&candidate.factor.read_ahead_sectors=8192&
# ignore=ioengine&tolerance.bytes_per_s=5&single_values=1`.
#
# A side is a filter of results, and levels that are chosen of it. Choices that no longer fit are dropped.

# The form of a baseline run: the run, and a tolerance for each metric.

PREFIX = "tolerance."


@dataclass(frozen=True)
class ToleranceField:
    """`sign` is the direction of a change for the worse: − for IOPS, + for a latency."""

    metric: Metric
    name: str
    text: str

    @property
    def sign(self) -> str:
        return "+" if self.metric.lower_is_better else "−"


@dataclass(frozen=True)
class BaselineForm:
    """`problem` says why the form was refused, "" otherwise. Without `runs`, no run has ended."""

    runs: tuple[Option, ...]
    fields: tuple[ToleranceField, ...]
    problem: str = ""


def baseline_form(runs: Sequence[Run], target: Target, baseline: Baseline | None, run: str = "") -> BaselineForm:
    """The form with the values of the current baseline run, else with defaults.

    `runs`: ended runs, oldest first. `run`: number of a proposed baseline run.
    """
    tolerances = baseline.tolerances if baseline else DEFAULT_TOLERANCES
    chosen = run or (str(baseline.run.number) if baseline and baseline.run else "")
    return _form(runs, target, chosen, {key: f"{percent:g}" for key, percent in tolerances.items()})


def refused_form(plan: Plan, target: Target, given: Mapping[str, str], problem: str) -> BaselineForm:
    return _form(ended_runs(plan, target), target, given.get("run", ""), _typed(given), problem)


def read_tolerances(given: Mapping[str, str]) -> dict[str, float]:
    """Percent by metric; empty fields are left out. Raises Refusal."""
    tolerance_by_metric = {}
    for key, text in _typed(given).items():
        try:
            tolerance_by_metric[key] = float(text.replace(",", "."))
        except ValueError as error:
            metric = known_metric(key)
            label = metric.label if metric else key
            sentence = f"The tolerance of {label} is {text!r}. Enter a number in percent."
            raise Refusal("tolerance_refused", sentence) from error
    return tolerance_by_metric


def _typed(given: Mapping[str, str]) -> dict[str, str]:
    typed = {key.removeprefix(PREFIX): text.strip() for key, text in given.items() if key.startswith(PREFIX)}
    return {key: text for key, text in typed.items() if text}


def _form(
    runs: Sequence[Run], target: Target, chosen: str, texts: Mapping[str, str], problem: str = ""
) -> BaselineForm:
    options = tuple(Option(str(run.number), f"run {run.number}", str(run.number) == chosen) for run in reversed(runs))
    metrics: Sequence[Metric] = judged_metrics(runs[-1], target) if runs else ()
    fields = tuple(ToleranceField(metric, f"{PREFIX}{metric.key}", texts.get(metric.key, "")) for metric in metrics)
    return BaselineForm(options, fields, problem)


SIDES = {"baseline": "Baseline", "candidate": "Candidate"}


@dataclass(frozen=True)
class ChosenSide:
    """`source` is a filter, "" if none is chosen. `levels` are the chosen ones by `target`, `factor.<name>` or, of an
    import, `label.<name>`."""

    name: str
    source: str
    levels: Mapping[str, str]


@dataclass(frozen=True)
class AcceptanceQuestion:
    """`typed` has the text of each tolerance by metric."""

    sides: tuple[ChosenSide, ChosenSide]
    ignored: tuple[str, ...]
    typed: Mapping[str, str]
    single_values: bool


@dataclass(frozen=True)
class AcceptanceSide:
    """`all_rows` are those of the source; `results` has those at the chosen levels that exist."""

    chosen: ChosenSide
    all_rows: tuple[ResultRow, ...]
    levels: Mapping[str, str]
    results: Side


def read_address(query: QueryDict) -> AcceptanceQuestion:
    baseline, candidate = (_side(query, name) for name in SIDES)
    typed = _below(query, PREFIX)
    ignored = tuple(name for name in dict.fromkeys(query.getlist("ignore")) if name in (*FACTORS, UNSTATED))
    return AcceptanceQuestion((baseline, candidate), ignored, typed, query.get("single_values") == "1")


def _side(query: QueryDict, name: str) -> ChosenSide:
    return ChosenSide(name, query.get(name, "").strip(), _below(query, f"{name}."))


def _below(query: QueryDict, prefix: str) -> dict[str, str]:
    """The texts of keys with the prefix, by the rest of the key."""
    return {key.removeprefix(prefix): str(text) for key, text in query.items() if key.startswith(prefix) and text}


_IMPORT, _RUN = re.compile(r"import=([0-9]{1,9})", re.ASCII), re.compile(r"run=([0-9]{1,9})", re.ASCII)


def imported_in(side: ChosenSide) -> int | None:
    """The number of the import that is all of the side."""
    match = _IMPORT.fullmatch(side.source)
    return int(match[1]) if match else None


def run_in(side: ChosenSide) -> int | None:
    """The number of the run that is all of the side, apart from a chosen target."""
    match = _RUN.fullmatch(side.source)
    return int(match[1]) if match and set(side.levels) <= {TARGET} else None


def acceptance_side(chosen_side: ChosenSide) -> AcceptanceSide:
    """Raises Refusal."""
    whole_side = read_side(chosen_side.name, chosen_side.source)
    levels, side = at_levels(whole_side, chosen_side.levels)
    return AcceptanceSide(chosen_side, tuple(whole_side.rows), levels, side)


def address_of(baseline: Baseline) -> str:
    """The address of the acceptance test whose baseline is this import."""
    assert baseline.imported is not None
    tolerances = [(key, f"{percent:.15g}") for key, percent in baseline.tolerances.items()]
    side = ChosenSide("baseline", f"import={baseline.imported.number}", baseline.levels)
    return write_address([side], baseline.ignored, tolerances, single_values=baseline.single_values)


def write_address(
    sides: Iterable[ChosenSide], ignored: Iterable[str], tolerances: Iterable[tuple[str, str]], *, single_values: bool
) -> str:
    """The address that `read_address` reads."""
    pairs = []
    for side in sides:
        pairs.append((side.name, side.source))
        pairs += [(f"{side.name}.{name}", text) for name, text in side.levels.items()]
    pairs += [("ignore", name) for name in ignored]
    pairs += [(f"{PREFIX}{key}", text) for key, text in tolerances if text]
    return urlencode([*pairs, *([("single_values", "1")] if single_values else [])])


MAX_OFFERED = 200  # of each kind, newest first
NOT_STATED = "not stated"


@dataclass(frozen=True)
class AcceptanceForm:
    """`sources` are the two sides. `unstated` are the labels of factors that only one side states, and that count."""

    sources: tuple[Choice, ...]
    single_values: bool
    levels: tuple[Choice, ...] = ()
    ignored: Pick | None = None
    unstated: tuple[str, ...] = ()
    fields: tuple[ToleranceField, ...] = ()


def form_of(question: AcceptanceQuestion, sides: Sequence[AcceptanceSide]) -> AcceptanceForm:
    """`sides` has both sides, or is empty."""
    offered = _offered()
    sources = tuple(_source(side, offered) for side in question.sides)
    if len(sides) < 2:
        return AcceptanceForm(sources, question.single_values)
    baseline, candidate = sides
    only_one = unstated(baseline.results, candidate.results)
    counting = () if UNSTATED in question.ignored else [name for name in only_one if name not in question.ignored]
    return AcceptanceForm(
        sources,
        question.single_values,
        (*_levels(baseline, candidate), *_levels(candidate, baseline)),
        _ignored(baseline, candidate, question.ignored, only_one),
        tuple(point_words.label(name) for name in counting),
        tuple(ToleranceField(metric, f"{PREFIX}{metric.key}", text) for metric, text in tolerances(question, sides)),
    )


def _offered() -> dict[str, list[tuple[str, str]]]:
    """Filters and their texts, by kind."""
    ended = Run.objects.filter(state__in=ENDED_RUN_STATES).order_by("-number")
    runs = ended.values_list("number", "version__plan__title")[:MAX_OFFERED]
    imports = Import.objects.order_by("-number").values_list("number", "title")
    targets = Target.objects.order_by("host__slug", "slug").values_list("host__slug", "slug").distinct()
    return {
        "Runs": [(f"run={number}", f"run {number}: {title}") for number, title in runs],
        "Imports": [(f"import={number}", text) for number, text in imports.filter(slug=None)[:MAX_OFFERED]],
        "References": [(f"import={n}", text) for n, text in imports.exclude(slug=None).order_by("title")],
        "Targets, all runs": [(f"target={host}/{slug}", f"{host}/{slug}") for host, slug in targets[:MAX_OFFERED]],
    }


def _source(side: ChosenSide, offered: Mapping[str, Sequence[tuple[str, str]]]) -> Choice:
    groups = [
        Group(kind, tuple(Option(value, text, value == side.source) for value, text in pairs))
        for kind, pairs in offered.items()
        if pairs
    ]
    if side.source and not any(option.chosen for group in groups for option in group.options):
        groups.append(Group("Filter", (Option(side.source, side.source, True),)))
    return Choice(f"id-{side.name}", side.name, SIDES[side.name], tuple(groups), "choose")


def side_text(form: AcceptanceForm, name: str) -> str:
    """The source of a side and its chosen levels: `Dell PowerEdge 2970, Read-ahead (sectors) not set`."""
    choices_of_side = [choice for choice in (*form.sources, *form.levels) if choice.name.split(".")[0] == name]
    parts = []
    for choice in choices_of_side:
        text = next((option.text for group in choice.groups for option in group.options if option.chosen), "")
        label = choice.label.removeprefix(f"{SIDES[name]}: ") if choice.name != name else ""
        parts += [f"{label} {text}".lstrip()] if text else []
    return ", ".join(parts)


def _levels(side: AcceptanceSide, other: AcceptanceSide) -> Iterable[Choice]:
    """Selects of what one row must not mix, of factors that vary on this side only, and of what is chosen."""
    rows = side.all_rows
    needed = [name for name in (TARGET, *_labels(rows)) if len(levels_of(rows, name)) > 1]
    vary, vary_there = (varying(_points(each_side.all_rows)) for each_side in (side, other))
    alone = [f"{FACTOR_PREFIX}{name}" for name in vary if name in FACTORS and name not in vary_there]
    for name in dict.fromkeys((*needed, *alone, *side.levels)):
        yield _level_choice(side, name, levels_of(rows, name) - {""})


def _labels(rows: Sequence[ResultRow]) -> list[str]:
    """The labels in which tests of an import differ that are otherwise equal, also in their targets."""
    alike: dict[tuple[object, ...], list[ResultRow]] = {}
    for row in rows:
        if row.imported:
            key = (row.imported, row.point_key, row.direction, row.test, row.repeat)
            alike.setdefault(key, []).append(row)
    names = {name for rows_alike in alike.values() if len(rows_alike) > 1 for row in rows_alike for name in row.facts}
    at_one_target: dict[str, list[ResultRow]] = {}
    for row in rows:
        at_one_target.setdefault(level_of(row, TARGET), []).append(row)
    separating = [
        key
        for key in (f"{LABEL_PREFIX}{name}" for name in sorted(names))
        if any(len(levels_of(group, key)) > 1 for group in alike.values() if len(group) > 1)
        and any(len(levels_of(group, key)) > 1 for group in at_one_target.values())  # else the target says as much
    ]
    return separating


def _level_choice(side: AcceptanceSide, name: str, texts: Iterable[str]) -> Choice:
    options = tuple(Option(text, text, side.levels.get(name) == text) for text in sorted(texts))
    key = f"{side.chosen.name}.{name}"
    return Choice(f"id-{key}", key, f"{SIDES[side.chosen.name]}: {level_label(name)}", (Group("", options),), "all")


def level_label(name: str) -> str:
    """Of `target`, `factor.<name>` or `label.<name>`."""
    if name.startswith(FACTOR_PREFIX):
        return point_words.label(name.removeprefix(FACTOR_PREFIX))
    return "Target" if name == TARGET else label_of_fact(name.removeprefix(LABEL_PREFIX))


def _ignored(
    baseline: AcceptanceSide, candidate: AcceptanceSide, ignored: Sequence[str], only_one: Sequence[str]
) -> Pick:
    """Factors that have one level on each side, and not the same; those that only one side states also together."""
    together = Option(UNSTATED, f"All that only one side states ({len(only_one)})", UNSTATED in ignored)
    options = [together] if only_one else []
    named = {*baseline.results.factors, *candidate.results.factors, *(only_one if together.chosen else ())}
    for name in _names((*baseline.results.rows, *candidate.results.rows)):
        levels = [levels_of(side.results.rows, f"{FACTOR_PREFIX}{name}") for side in (baseline, candidate)]
        differ = levels[0] != levels[1] and all(len(side_levels) == 1 for side_levels in levels)
        if name not in named and (differ or name in ignored):
            texts = " | ".join(map(_level_words, levels))
            options.append(Option(name, f"{point_words.label(name)}: {texts}", name in ignored))
    return Pick("ignore", "Ignored factors", tuple(options))


def differing_levels(sides: Sequence[AcceptanceSide]) -> list[str]:
    """`Queue depth (baseline 32, candidate 1)`: factors of which a level is chosen, and which therefore do not count,
    if the other side has other levels."""
    sentences = []
    for name in in_order({name for side in sides for name in side.results.factors}):
        levels = [levels_of(side.results.rows, f"{FACTOR_PREFIX}{name}") for side in sides]
        if levels[0] != levels[1]:
            texts = [_level_words(side_levels) for side_levels in levels]
            sentences.append(f"{point_words.label(name)} (baseline {texts[0]}, candidate {texts[1]})")
    return sentences


def _level_words(texts: Iterable[str]) -> str:
    return ", ".join(sorted(texts)).replace(NOT_SET.value, NOT_STATED)


def _names(rows: Iterable[ResultRow]) -> list[str]:
    """The factors of the rows, in their order."""
    return in_order({name for point in _points(rows) for name in point if name in FACTORS})


def _points(rows: Iterable[ResultRow]) -> list[Point]:
    return list({row.point_key: row.point for row in rows}.values())


def tolerances(question: AcceptanceQuestion, sides: Sequence[AcceptanceSide]) -> list[tuple[Metric, str]]:
    """The metrics that both sides have, each with the text of its tolerance: as typed, or else the defaults. A typed
    metric that only the baseline has stays, because its rows were not measured."""
    known = [metrics_of(side.results.rows) for side in sides]
    keys = dict.fromkeys((*COMPARED, *sorted(frozenset[str]().union(*known))))
    offered = [metric for key in keys if key not in NOT_JUDGED and (metric := known_metric(key))]
    both = [metric for metric in offered if all(metric.key in side_metrics for side_metrics in known)]
    typed = {
        metric.key: question.typed[metric.key]
        for metric in offered
        if metric.key in question.typed and metric.key in known[0]
    }
    texts = typed or {key: f"{percent:g}" for key, percent in _defaults(both, sides).items()}
    return [(metric, texts.get(metric.key, "")) for metric in offered if metric in both or metric.key in typed]


def without_baseline(question: AcceptanceQuestion, form: AcceptanceForm) -> list[str]:
    """The labels of typed metrics that the baseline does not have, and that are not judged."""
    judged = {field.metric.key for field in form.fields}
    return [metric.label for key in question.typed if key not in judged and (metric := known_metric(key))]


def _defaults(metrics: Sequence[Metric], sides: Sequence[AcceptanceSide]) -> dict[str, float]:
    """IOPS of random workloads, else bandwidth, and p99 latency, as far as both sides have them."""
    random = any("rand" in str(row.point.get("pattern")) for side in sides for row in side.results.rows)
    rate = "iops" if random else "bytes_per_s"
    usual = {rate: DEFAULT_TOLERANCES["iops"], "latency_p99": DEFAULT_TOLERANCES["latency_p99"]}
    known = {metric.key: usual[metric.key] for metric in metrics if metric.key in usual}
    return known or {metric.key: usual[rate] for metric in metrics[:1]}
