"""The trials of a run as tables: one for each pattern, block sizes down and threads across, like the table of bm-flash.

Two numeric factors make the axes. Factors that also vary make one table for each combination of their levels.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

from webapp.plans.factors import FACTORS
from webapp.runs.models import Run, Trial
from webapp.screens import points
from webapp.screens.addresses import trial_addresses
from webapp.screens.payloads import LiveCell
from webapp.screens.runs.grid import mean_text

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
        return sorted({cell[axis] for cell in cells}, key=points.sort_key)

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
    layout = next((each for each in layouts if each.fits), None)
    if layout is None:
        return None
    titles = [name for name in varying if name not in (layout.row, layout.column)]
    make_title, make_cell = (
        partial(_title, titles, *_several(trials)),
        partial(_cell, partial(trial_addresses(), run.number), _by_number(cells), own_metric),
    )
    return Pivot(
        row_label=points.label(layout.row),
        column_label=points.label(layout.column),
        tables=tuple(_table(layout, found, make_title, make_cell) for found in layout.tables.values()),
    )


def _several(trials: Sequence[Trial]) -> tuple[bool, bool]:
    """Whether there are several targets, and several parts of the plan."""
    return len({trial.target_id for trial in trials}) > 1, len({trial.part for trial in trials}) > 1


def _by_number(cells: Iterable[LiveCell]) -> dict[int, LiveCell]:
    return {cell.trial: cell for cell in cells}


def _table(
    layout: _Layout,
    found: Mapping[Place, Sequence[Trial]],
    make_title: Callable[[Trial], str],
    make_cell: Callable[[Sequence[Trial]], PivotCell],
) -> PivotTable:
    columns = layout.levels(found, 1)
    return PivotTable(
        title=make_title(next(iter(found.values()))[0]),
        columns=tuple(points.level(layout.column, level) for level in columns),
        rows=tuple(
            PivotRow(
                points.level(layout.row, row),
                tuple(make_cell(found[row, column]) if (row, column) in found else None for column in columns),
            )
            for row in layout.levels(found, 0)
        ),
    )


def _cell(
    address_of: Callable[[int], str], cells: Mapping[int, LiveCell], own_metric: bool, trials: Sequence[Trial]
) -> PivotCell:
    numbers = tuple(trial.number for trial in sorted(trials, key=lambda trial: trial.repeat))
    text = mean_text([cells[number] for number in numbers], own_metric)
    return PivotCell(numbers, address_of(numbers[0]), text)


def _title(names: Sequence[str], targets: bool, parts: bool, trial: Trial) -> str:
    """The pattern and other varying levels, and the target and the part of the plan if there are several."""
    texts = [points.in_words(trial.point, names)] if names else []
    texts += [trial.place] if targets else []
    return " · ".join([*([trial.part] if parts else []), *texts])
