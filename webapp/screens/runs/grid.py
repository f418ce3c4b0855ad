"""The results of a run as tables: one row per point and target, or block sizes down and threads across.

Two numeric factors make the axes. Factors that also vary make one table for each combination of their levels. Those of
an ended run are stored as the page shows them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from uuid import UUID

from django.template.loader import render_to_string

from webapp.analysis.equals import same_for_all
from webapp.analysis.seals import scopes_of_tables
from webapp.core import formatting
from webapp.core.answers import Question, answered
from webapp.core.statistics import mean_of, summarise
from webapp.plans.factors import FACTORS
from webapp.plans.points import varying
from webapp.results.metrics import Missing, default_metric
from webapp.runs.models import OPEN_RUN_STATES, Run, Trial
from webapp.runs.selectors import read_further
from webapp.screens import point_words
from webapp.screens.addresses import trial_addresses
from webapp.screens.payloads import LiveCell
from webapp.screens.runs.live import live_cells

# The tables as the page of a run shows them.


@dataclass(frozen=True)
class TrialTables:
    cells: tuple[LiveCell, ...]  # from which the page draws the tables again, for another metric
    html: str


def trial_tables(run: Run) -> TrialTables:
    if run.state in OPEN_RUN_STATES:  # what changes while a trial runs is not watched
        return _trial_tables(run.pk)
    return answered(Question((str(run.number),), scopes_of_tables(run), TrialTables, partial(_trial_tables, run.pk)))


def _trial_tables(run_id: UUID) -> TrialTables:
    """Reads the run itself, because a row that was read before the seal may be older than the seal."""
    run = Run.objects.select_related("version").get(pk=run_id)
    trials = list(
        run.trials.defer("workload", "further_workloads", "settings").prefetch_related("host", "target__host")
    )
    cells = live_cells(run.trials.order_by("index"))
    points_of_run = {trial.point_key: trial.point for trial in trials}.values()
    names, own_metric = varying(points_of_run), not default_metric(points_of_run).column
    ordered = in_plan_order(run, trials, names)
    context = {
        "grid": build_grid(run, ordered, names, cells, own_metric=own_metric),
        "pivot": build_pivot(run, ordered, names, cells, own_metric=own_metric),
    }
    html = render_to_string("screens/parts/run_trials.html", context)
    return TrialTables(cells, str.__str__(html))  # SafeString cannot be encoded


# The grid of a run: one row per point and target, one column per repeat.


@dataclass(frozen=True)
class GridCell:
    trial: int
    address: str  # of the trial's page
    state: str
    title: str
    text: str  # the run's metric by direction, or the label of the state
    invalid: bool
    troubled: bool  # the kernel log has storage errors


@dataclass(frozen=True)
class GridRow:
    part: str
    point: str  # its varying levels in one line
    cells: tuple[GridCell | None, ...]
    spread: str  # of the metric over the repeats; "" with fewer than two


@dataclass(frozen=True)
class Grid:
    same: tuple[str, ...]  # conditions that all trials share, in words
    repeats: tuple[int, ...]
    several_parts: bool
    rows: tuple[GridRow, ...]

    @property
    def columns(self) -> int:
        return 2 + len(self.repeats)


def build_grid(
    run: Run, trials: Sequence[Trial], varying: Sequence[str], cells: Sequence[LiveCell], *, own_metric: bool
) -> Grid:
    """`trials`: in the order of the plan, with target and host. `varying`: names of their varying factors.

    The cells show IOPS, or the engine's own metric.
    """
    repeats = tuple(sorted({trial.repeat for trial in trials}))
    read_further(trials)
    by_row: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        by_row.setdefault((trial.part, trial.point_key, str(trial.target_id)), []).append(trial)
    known = {cell.trial: cell for cell in cells}
    groups = list(by_row.values())
    target_of, address_of = _target_texts(groups), partial(trial_addresses(), run.number)
    return Grid(
        same=tuple(same_for_all([trial.shown_point for trial in trials])),
        repeats=repeats,
        several_parts=len({trial.part for trial in trials}) > 1,
        rows=tuple(
            _row(group, _row_text(group[0], varying, target_of(group[0])), repeats, known, address_of, own_metric)
            for group in groups
        ),
    )


def in_plan_order(run: Run, trials: Iterable[Trial], varying: Sequence[str]) -> list[Trial]:
    """The trials, sorted by part of the plan, then by level, host and target."""
    parts = {part["name"]: place for place, part in enumerate(run.version.document.get("parts", []))}

    def place(trial: Trial) -> tuple[object, ...]:
        levels = tuple(point_words.sort_key(trial.point.get(name)) for name in varying)
        return parts.get(trial.part, len(parts)), levels, trial.host.slug, trial.target.slug

    return sorted(trials, key=place)


def _row_text(trial: Trial, names: Sequence[str], target: str) -> str:
    """The varying levels and the target."""
    texts = [point_words.in_words(trial.point, names)] if names else []
    return " · ".join([*texts, *([target] if target else [])]) or point_words.in_words(trial.point)


def _target_texts(groups: Sequence[Sequence[Trial]]) -> Callable[[Trial], str]:
    """The text for the targets of a row: "" if all rows have the same, with the host if there are several hosts."""
    if len({group[0].place for group in groups}) < 2:
        return lambda _: ""
    if len({group[0].host_id for group in groups}) < 2:
        return lambda trial: trial.target_names
    return lambda trial: trial.place


def _row(
    group: Sequence[Trial],
    point: str,
    repeats: Sequence[int],
    known: Mapping[int, LiveCell],
    address_of: Callable[[int], str],
    own_metric: bool,
) -> GridRow:
    by_repeat = {trial.repeat: known[trial.number] for trial in group if trial.number in known}
    cells = [by_repeat.get(repeat) for repeat in repeats]
    return GridRow(
        part=group[0].part,
        point=point,
        cells=tuple(_grid_cell(cell, address_of(cell.trial), own_metric) if cell else None for cell in cells),
        spread=_spread([cell for cell in cells if cell], own_metric),
    )


def _spread(cells: Sequence[LiveCell], own_metric: bool) -> str:
    """Standard deviation divided by the mean of the valid repeats' IOPS, summed over directions, without zeros; as in
    runGrid.ts.

    An engine's own metric is in one direction only.
    """
    valid = [cell.values for cell in cells if cell.values and not cell.invalid]
    sums = [sum((value.own if own_metric else value.iops) or 0.0 for value in values) for values in valid]
    averaged = [value for value in sums if value]
    if len(averaged) < 2:
        return ""
    summary = summarise(averaged)
    return f"± {formatting.percent(100 * (summary.sd or 0.0) / summary.mean)}"


def _grid_cell(cell: LiveCell, address: str, own_metric: bool) -> GridCell:
    """The same text as in `features/runGrid.ts`."""
    title = f"Trial {cell.trial}: {cell.state_label}" + (f". {cell.reason}" if cell.reason else "")
    title += f". Invalid: {cell.invalid}" if cell.invalid else ""
    title += (
        f". Kernel log: {cell.kernel_lines} line{'' if cell.kernel_lines == 1 else 's'}" if cell.kernel_lines else ""
    )
    return GridCell(
        cell.trial, address, cell.state, title, _text(cell, own_metric), bool(cell.invalid), cell.kernel_lines > 0
    )


def mean_text(cells: Sequence[LiveCell], own_metric: bool) -> str:
    """The geometric mean of the valid repeats of a point by direction, or its state; as in `features/runPivot.ts`."""
    measured = [cell for cell in cells if cell.state == "done" and cell.values and not cell.invalid]
    if len(measured) < 2:
        only = measured[0] if measured else cells[0]
        return "–" if only.state == "cancelled" else _text(only, own_metric)
    if own_metric:
        return " ".join(_text(cell, own_metric) for cell in measured)
    by_direction: dict[str, list[float]] = {}
    for value in (value for cell in measured for value in cell.values):
        if value.iops is not None:
            by_direction.setdefault(value.direction, []).append(value.iops)
    if not by_direction:
        return Missing.NO_VALUE
    return " / ".join(map(_mean_and_zeros, by_direction.values()))


def _mean_and_zeros(values: Sequence[float]) -> str:
    """`619 (0 in 1 of 3)`: a value of 0 is not in the mean."""
    mean, zeros = mean_of(values), sum(value == 0 for value in values)
    return formatting.iops(mean) + (f" (0 in {zeros} of {len(values)})" if zeros and mean else "")


def _text(cell: LiveCell, own_metric: bool) -> str:
    if cell.state == "done":
        texts = [value.own_text if own_metric else formatting.iops(value.iops) for value in cell.values]
        if any(text not in ("", formatting.NOTHING) for text in texts):
            return " / ".join(filter(None, texts))
        return Missing.NO_VALUE if cell.values else Missing.NOT_MEASURED
    return "·" if cell.state == "planned" else cell.state_label


_AXES_FIRST = ("block_size", "numjobs", "iodepth")  # the order in which axes are tried
_MIN_FILLED = 0.5  # share of the cells of all tables that have a trial
Place = tuple[object, object]  # levels of row and column


@dataclass(frozen=True)
class PivotCell:
    """The repeats of a point; `address` is the page of the first one."""

    trials: tuple[int, ...]
    address: str
    text: str

    @property
    def numbers(self) -> str:
        return " ".join(map(str, self.trials))


@dataclass(frozen=True)
class PivotRow:
    level: str
    cells: tuple[PivotCell | None, ...]


@dataclass(frozen=True)
class PivotTable:
    title: str
    columns: tuple[str, ...]
    rows: tuple[PivotRow, ...]


@dataclass(frozen=True)
class Pivot:
    row_label: str
    column_label: str
    tables: tuple[PivotTable, ...]


class _Layout:
    """The trials by table, row and column."""

    def __init__(self, trials: Iterable[Trial], row: str, column: str) -> None:
        self.row, self.column = row, column
        self.tables: defaultdict[object, defaultdict[Place, list[Trial]]] = defaultdict(lambda: defaultdict(list))
        for trial in trials:
            others = {name: level for name, level in trial.point.items() if name not in (row, column)}
            table = (trial.part, trial.target_id, repr(sorted(others.items())))
            self.tables[table][trial.point.get(row), trial.point.get(column)].append(trial)

    def levels(self, cells: Iterable[Place], axis: int) -> list[object]:
        return sorted({cell[axis] for cell in cells}, key=point_words.sort_key)

    @property
    def fits(self) -> bool:
        """Whether a table has at least two rows and columns, and the tables are filled well enough."""
        sizes = [(len(self.levels(cells, 0)), len(self.levels(cells, 1)), len(cells)) for cells in self.tables.values()]
        places = sum(rows * columns for rows, columns, _ in sizes)
        filled = sum(cells for _, _, cells in sizes)
        return any(rows > 1 and columns > 1 for rows, columns, _ in sizes) and filled >= _MIN_FILLED * places


def build_pivot(
    run: Run, trials: Sequence[Trial], varying: Sequence[str], cells: Iterable[LiveCell], *, own_metric: bool
) -> Pivot | None:
    """None if the run does not combine two numeric factors with each other.

    `trials`: in the order of the plan. `varying`: names of their varying factors. `cells`: of all trials.
    """
    numeric = [name for name in varying if name in FACTORS and FACTORS[name].numeric]
    axes = sorted(numeric, key=lambda name: _AXES_FIRST.index(name) if name in _AXES_FIRST else len(_AXES_FIRST))
    layouts = (_Layout(trials, row, column) for row, column in permutations(axes, 2))
    layout = next((candidate for candidate in layouts if candidate.fits), None)
    if layout is None:
        return None
    titles = [name for name in varying if name not in (layout.row, layout.column)]
    several_targets = len({trial.target_id for trial in trials}) > 1
    several_parts = len({trial.part for trial in trials}) > 1
    make_title, make_cell = (
        partial(_title, titles, several_targets, several_parts),
        partial(_cell, partial(trial_addresses(), run.number), {cell.trial: cell for cell in cells}, own_metric),
    )
    return Pivot(
        row_label=point_words.label(layout.row),
        column_label=point_words.label(layout.column),
        tables=tuple(_table(layout, places, make_title, make_cell) for places in layout.tables.values()),
    )


def _table(
    layout: _Layout,
    trials_by_place: Mapping[Place, Sequence[Trial]],
    make_title: Callable[[Trial], str],
    make_cell: Callable[[Sequence[Trial]], PivotCell],
) -> PivotTable:
    columns = layout.levels(trials_by_place, 1)
    return PivotTable(
        title=make_title(next(iter(trials_by_place.values()))[0]),
        columns=tuple(point_words.level(layout.column, level) for level in columns),
        rows=tuple(
            PivotRow(
                point_words.level(layout.row, row),
                tuple(
                    make_cell(trials_by_place[row, column]) if (row, column) in trials_by_place else None
                    for column in columns
                ),
            )
            for row in layout.levels(trials_by_place, 0)
        ),
    )


def _cell(
    address_of: Callable[[int], str], cells: Mapping[int, LiveCell], own_metric: bool, trials: Sequence[Trial]
) -> PivotCell:
    numbers = tuple(trial.number for trial in sorted(trials, key=lambda trial: trial.repeat))
    text = mean_text([cells[number] for number in numbers], own_metric)
    return PivotCell(numbers, address_of(numbers[0]), text)


def _title(names: Sequence[str], several_targets: bool, several_parts: bool, trial: Trial) -> str:
    """The pattern and other varying levels, and the target and the part of the plan if there are several."""
    texts = [point_words.in_words(trial.point, names)] if names else []
    texts += [trial.place] if several_targets else []
    return " · ".join([*([trial.part] if several_parts else []), *texts])
