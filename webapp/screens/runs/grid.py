"""The grid of a run's plan: a row a point and target, a column a repeat."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from django.utils.safestring import SafeString

from webapp.core import formatting
from webapp.runs.models import Run, Trial
from webapp.runs.selectors import read_further
from webapp.screens import points
from webapp.screens.addresses import TrialAddress, trial_addresses
from webapp.screens.choices import escaped
from webapp.screens.payloads import LiveCell


@dataclass(frozen=True)
class GridCell:
    trial: int
    state: str
    title: str
    text: str  # IOPS by direction, or the state in words
    invalid: bool
    troubled: bool  # the kernel's log told of trouble with storage


@dataclass(frozen=True)
class GridRow:
    part: str
    point: str  # its varying levels in one line, so that the numbers beside it are in sight
    cells: tuple[GridCell | None, ...]
    spread: str  # of IOPS over the repeats; "" with fewer than two


@dataclass(frozen=True)
class Grid:
    fixed: tuple[tuple[str, str], ...]  # label and level of those that do not
    repeats: tuple[int, ...]
    several_parts: bool
    rows: tuple[GridRow, ...]

    @property
    def columns(self) -> int:
        return 2 + len(self.repeats)


def build_grid(run: Run, trials: Sequence[Trial], cells: Sequence[LiveCell]) -> Grid:
    """Rows in the order of the plan's parts, then by level; `trials` with their target and host."""
    names = points.varying(trial.point for trial in trials)
    repeats = tuple(sorted({trial.repeat for trial in trials}))
    read_further(trials)
    by_row: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        by_row.setdefault((trial.part, trial.point_key, str(trial.target_id)), []).append(trial)
    known = {cell.trial: cell for cell in cells}
    groups = sorted(by_row.values(), key=lambda group: _place(run, group[0], names))
    place_of = _place_words(groups)
    return Grid(
        fixed=_fixed(trials, names),
        repeats=repeats,
        several_parts=len({trial.part for trial in trials}) > 1,
        rows=tuple(_row(group, _words(group[0], names, place_of(group[0])), repeats, known) for group in groups),
    )


def _place(run: Run, trial: Trial, names: Sequence[str]) -> tuple[object, ...]:
    parts = [part["name"] for part in run.version.document.get("parts", [])]
    part = parts.index(trial.part) if trial.part in parts else len(parts)
    levels = tuple(points.sort_key(trial.point.get(name)) for name in names)
    return part, levels, trial.host.slug, trial.target.slug


def _fixed(trials: Sequence[Trial], varying: Sequence[str]) -> tuple[tuple[str, str], ...]:
    point = trials[0].point if trials else {}
    return tuple((points.label(n), points.level(n, point[n])) for n in points.in_order(point) if n not in varying)


def _words(trial: Trial, names: Sequence[str], place: str) -> str:
    """What sets a row apart: the levels that vary, and the place."""
    words = [points.in_words(trial.point, names)] if names else []
    return " · ".join([*words, *([place] if place else [])]) or points.in_words(trial.point)


def _place_words(groups: Sequence[Sequence[Trial]]) -> Callable[[Trial], str]:
    """The target of a row, or those at once, with its host, where there are several."""
    if len({group[0].place for group in groups}) < 2:
        return lambda _: ""
    if len({group[0].host_id for group in groups}) < 2:
        return lambda trial: trial.target_names
    return lambda trial: trial.place


def _row(group: Sequence[Trial], words: str, repeats: Sequence[int], known: Mapping[int, LiveCell]) -> GridRow:
    by_repeat = {trial.repeat: known[trial.number] for trial in group if trial.number in known}
    cells = [by_repeat.get(repeat) for repeat in repeats]
    return GridRow(
        part=group[0].part,
        point=words,
        cells=tuple(_cell(cell) if cell else None for cell in cells),
        spread=_spread([cell for cell in cells if cell]),
    )


def _spread(cells: Sequence[LiveCell]) -> str:
    """Standard deviation over the mean of the valid repeats' IOPS, all directions together; as in runGrid.ts."""
    sums = [sum(value.iops for value in cell.values) for cell in cells if cell.values and not cell.invalid]
    if len(sums) < 2 or not fmean(sums):
        return ""
    return f"± {formatting.percent(100 * stdev(sums) / fmean(sums))}"


def _cell(cell: LiveCell) -> GridCell:
    """As `features/runGrid.ts` shows it with IOPS chosen."""
    title = f"Trial {cell.trial}: {cell.state_label}" + (f". {cell.reason}" if cell.reason else "")
    title += f". Invalid: {cell.invalid}" if cell.invalid else ""
    title += (
        f". Kernel log: {cell.kernel_lines} line{'' if cell.kernel_lines == 1 else 's'}" if cell.kernel_lines else ""
    )
    return GridCell(cell.trial, cell.state, title, _text(cell), bool(cell.invalid), cell.kernel_lines > 0)


def _text(cell: LiveCell) -> str:
    if cell.state == "done":
        return " / ".join(formatting.iops(value.iops) for value in cell.values) or "no result"
    return "·" if cell.state == "planned" else cell.state_label


# ---- as HTML, which a template takes too long for: a run has hundreds of trials


def grid_rows(run: Run, grid: Grid) -> SafeString:
    """The body of the table, with a heading over each part where there are several."""
    return SafeString("".join(_lines(run.number, grid)))


def _lines(run: int, grid: Grid) -> Iterator[str]:
    address_of, part = trial_addresses(), None
    for row in grid.rows:
        if grid.several_parts and row.part != part:
            part = row.part
            yield f'<tr class="group"><th scope="rowgroup" colspan="{grid.columns}">{escaped(part)}</th></tr>\n'
        cells = "".join(_cell_html(run, cell, address_of) if cell else "<td></td>" for cell in row.cells)
        spread = f'<td class="num muted" data-spread>{escaped(row.spread)}</td>'
        yield f'<tr><th scope="row">{escaped(row.point)}</th>{cells}{spread}</tr>\n'


def _cell_html(run: int, cell: GridCell, address_of: TrialAddress) -> str:
    marks = f"{' is-invalid' if cell.invalid else ''}{' is-troubled' if cell.troubled else ''}"
    link = f'<a href="{address_of(run, cell.trial)}" title="{escaped(cell.title)}">{escaped(cell.text)}</a>'
    return f'<td class="trial state-{cell.state}{marks}" data-trial="{cell.trial}">{link}</td>'
