"""Where the marks of the forest plot stand, in percent of their tracks: of the answer's numbers, nothing else.

The tracks are SVG with positions in percent, because they scale and print, and because pages may have no inline styles.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from webapp.analysis.words import PERCENT, RATIO, shown
from webapp.bench.answer import BenchAnswer, BenchCell, BenchProduct, BenchRow
from webapp.bench.forest import RatioState, Whisker
from webapp.pictures.axes import Scale, round_values, tick_text
from webapp.results.metrics import METRICS, Metric, Missing

VALUE_PAD, RATIO_PAD, BEYOND = 18.0, 6.0, 1.5  # percent of a track on each side; values have texts beside their marks
NEAR = 2.4  # percent: nearer marks are moved apart, upwards and downwards
FEW_PRODUCTS = 4  # of more, rows are higher and names stand above the plot only
LOW_PX, HIGH_PX, EDGE_PX, APART_PX = 26, 34, 6.0, 6.0  # heights of rows, room for half a mark, distance of two marks
CAP_PX, DIAMOND = 4, 3
MARK_WIDE = 4.0  # percent: a whisker that is not wider than its mark is not drawn
LEAST_BAND = 1.2  # percent: the band of the margin stays visible beside large ratios
LEAST_RANGE = 1.12  # of the axis of ratios, on each side: small differences shall look small
WHISKER_ROOM = 1.6  # whiskers may widen the axis by this factor, and are cut there
MOST_TICKS = 5
LEAST_VALUES = 1.5  # highest / lowest value of an axis


@dataclass(frozen=True)
class Axis:
    """Logarithmic."""

    low: float
    high: float
    pad: float

    def at(self, value: float) -> float:
        """In percent; values beyond the ends are put beside them."""
        if self.high > self.low and not self.low * 0.999 <= value <= self.high * 1.001:
            return BEYOND if value < self.low else 100 - BEYOND
        return Scale(self.low, self.high, logarithmic=True).at(value, self.pad, 100 - self.pad)


@dataclass(frozen=True)
class Tick:
    x: str
    text: str


@dataclass(frozen=True)
class ValueMark:
    x: str
    y: str  # pixels
    colour: int


@dataclass(frozen=True)
class RatioMark:
    x: str
    y: str
    colour: int
    shape: int  # that of the product; of two products a diamond
    state: str
    bar: tuple[str, str]  # start and width, from ×1; empty texts without one
    is_inside: bool  # measured once, within the margin: grey
    whisker: tuple[str, str]  # its ends; empty texts without one
    whisker_kind: Whisker | None
    caps: tuple[str, str]  # the upper and lower ends of its caps
    beyond: str  # left | right: the ratio is beyond the axis; "" otherwise


@dataclass(frozen=True)
class RatioText:
    """One product beside the plot."""

    text: str
    state: str  # a RatioState, baseline | missing
    title: str
    plan: str  # the value of the button Plan; "" without one
    product: str  # its name
    colour: int
    n: str  # n = 1, where fewer repeats than elsewhere say it


@dataclass(frozen=True)
class ForestRow:
    name: str  # of the workload, with its pattern
    labels: tuple[tuple[str, bool], ...]  # whether the row before has the same one, and all before it
    spoken: str  # the values, for readers without the plot
    marks: tuple[ValueMark, ...]
    line: tuple[str, str]
    lowest: Tick
    highest: Tick
    ratios: tuple[RatioMark, ...]
    texts: tuple[RatioText, ...]
    place: int  # in the answer's rows


@dataclass(frozen=True)
class ForestPart:
    """The groups of one metric: they share two axes."""

    groups: tuple[tuple[str, str, tuple[ForestRow, ...], int], ...]  # name, words, rows, rows that are left out
    unit: str
    ticks: tuple[Tick, ...]
    ratio_ticks: tuple[Tick, ...]
    one: str  # where the ratio is 1
    band: tuple[str, str]  # start and width of the margin


@dataclass(frozen=True)
class Forest:
    columns: tuple[str, ...]  # labels of factors
    compared: tuple[BenchProduct, ...]
    baseline: BenchProduct
    parts: tuple[ForestPart, ...]
    ratio_of: str  # A ÷ B
    towards: tuple[str, str]  # what the left and the right side of the ratios mean
    margin: str
    key: str  # what the marks mean, of those that are drawn
    height: int  # of a row, in pixels
    middle: float
    is_wide: bool


@dataclass(frozen=True)
class Lacking:
    """Beside a missing number."""

    plan: str  # the value of the button Plan; "" without one
    why: str  # there is none


NONE_LACKING = Lacking("", "")
NOTHING: Mapping[tuple[int, str], Lacking] = {}


def forest(
    answer: BenchAnswer, *, whole: bool = False, lacking: Mapping[tuple[int, str], Lacking] = NOTHING
) -> Forest | None:
    """`whole`: all shared workloads. `lacking`: by row and product."""
    if not answer.forest or len(answer.products) < 2:
        return None
    baseline = next(product for product in answer.products if product.product == answer.baseline)
    compared = tuple(product for product in answer.products if product is not baseline)
    shown_rows = [answer.rows[at] for group in answer.forest for at in (group.shared if whole else group.rows)]
    margin = f"±{100 * answer.margin:g} %"
    columns = tuple(
        place for place in range(len(answer.label_columns)) if len({row.labels[place] for row in shown_rows}) > 1
    )
    columns = columns or tuple(range(len(answer.label_columns)))[:1]
    metrics = dict.fromkeys(group.metric for group in answer.forest)
    parts = tuple(_part(answer, METRICS[metric], compared, columns, whole=whole, lacking=lacking) for metric in metrics)
    name = compared[0].short if len(compared) == 1 else ""
    is_speed = METRICS[answer.forest[0].metric].is_speed
    sides = ("slower", "faster") if is_speed else ("lower", "higher")
    return Forest(
        columns=tuple(answer.label_columns[place] for place in columns),
        compared=compared,
        baseline=baseline,
        parts=parts,
        ratio_of=f"{name or 'Each'} ÷ {baseline.short}",
        towards=(f"← {sides[0]}", f"{sides[1]} →"),
        margin=margin,
        key=" ".join(
            _key([mark for part in parts for *_, rows, _ in part.groups for row in rows for mark in row.ratios], margin)
        ),
        height=_height(answer),
        middle=_height(answer) / 2,
        is_wide=len(answer.products) > FEW_PRODUCTS or not answer.loads,
    )


def _height(answer: BenchAnswer) -> int:
    return LOW_PX if len(answer.products) <= FEW_PRODUCTS else HIGH_PX


def _key(marks: Sequence[RatioMark], margin: str) -> Iterator[str]:
    states = {(RatioState(mark.state), mark.is_inside) for mark in marks}
    kinds: tuple[tuple[str, tuple[tuple[RatioState, bool, str], ...]], ...] = (
        ("Filled", ((RatioState.DIFFERENT, False, "different"),)),
        ("Filled grey", ((RatioState.EQUAL, False, "equal"),)),
        ("Hollow", ((RatioState.ONCE, False, "measured once"), (RatioState.DRIFT, False, "may be drift"))),
        (
            "Hollow grey",
            ((RatioState.UNCLEAR, False, "unclear"), (RatioState.ONCE, True, f"measured once, within {margin}")),
        ),
    )
    for look, meanings in kinds:
        if found := [words for state, is_inside, words in meanings if (state, is_inside) in states]:
            yield f"{look}: {' or '.join(found)}."
    if whiskers := {mark.whisker_kind for mark in marks if mark.whisker[0]}:
        words = " or ".join(_WHISKERS[kind] for kind in Whisker if kind in whiskers)
        yield f"Whisker, if wider than its mark: {words}."


_WHISKERS = {Whisker.INTERVAL: "95 % confidence interval", Whisker.NOISE: "noise of the table without repeats"}


def _part(
    answer: BenchAnswer,
    metric: Metric,
    compared: Sequence[BenchProduct],
    columns: Sequence[int],
    *,
    whole: bool,
    lacking: Mapping[tuple[int, str], Lacking],
) -> ForestPart:
    groups = [(group, group.shared if whole else group.rows) for group in answer.forest if group.metric == metric.key]
    rows = [answer.rows[place] for _, places in groups for place in places]
    values = [cell.mean for row in rows for cell in row.cells if cell.mean > 0] or [1.0]
    value_axis = _value_axis(values)
    ratio_axis = _ratio_axis([cell for row in rows for cell in row.cells if cell.ratio], len(compared))
    draw = _Drawing(answer, value_axis, ratio_axis, compared, columns, lacking)
    start, unity, end = (ratio_axis.at(value) for value in (1 / (1 + answer.margin), 1.0, 1 + answer.margin))
    form = RATIO if any("×" in cell.ratio_text for row in answer.rows for cell in row.cells) else PERCENT
    return ForestPart(
        groups=tuple(
            (
                group.name,
                " · ".join(filter(None, (group.words, *_constant(answer, places, columns)))),
                tuple(draw.rows(places)),
                len(group.shared) - len(places),
            )
            for group, places in groups
        ),
        unit=metric.label,
        ticks=tuple(Tick(_text(value_axis.at(at)), _plain(metric.format(at))) for at in value_ticks(value_axis)),
        ratio_ticks=tuple(Tick(_text(ratio_axis.at(at)), _plain(shown(at, form))) for at in ratio_ticks(ratio_axis)),
        one=_text(unity),
        band=(_text(min(start, unity - LEAST_BAND / 2)), _text(max(end - start, LEAST_BAND))),
    )


def _constant(answer: BenchAnswer, places: Sequence[int], columns: Sequence[int]) -> Iterator[str]:
    """`Jobs 1`, if other shared workloads have other levels."""
    for at, label in enumerate(answer.label_columns):
        if at not in columns and places:
            yield f"{label} {answer.rows[places[0]].labels[at]}"


def _plain(text: str) -> str:
    return tick_text(text).replace("+0 %", "0 %")


FAR, NEAR_ONE = 10.0, 4.0  # ratios of several products: those beyond FAR are put at the ends if half are NEAR_ONE


def _ratio_axis(cells: Sequence[BenchCell], products: int) -> Axis:
    sizes = {id(cell): max(cell.ratio, 1 / cell.ratio) for cell in cells if cell.ratio}
    is_mostly_near = products > 1 and sum(size <= NEAR_ONE for size in sizes.values()) * 2 >= len(sizes)
    inside = [cell for cell in cells if not is_mostly_near or sizes[id(cell)] <= FAR]
    ratios = [cell.ratio for cell in inside if cell.ratio]
    low, high = min(ratios, default=1.0), max(ratios, default=1.0)
    ends = [end for cell in inside for end in (cell.whisker_low, cell.whisker_high) if end]
    low = max(min([low, *ends]), low / WHISKER_ROOM)
    high = min(max([high, *ends]), high * WHISKER_ROOM)
    return Axis(min(low, 1 / LEAST_RANGE), max(high, LEAST_RANGE), RATIO_PAD)


def _value_axis(values: Sequence[float]) -> Axis:
    """Almost equal values are not put at its two ends."""
    low, high = min(values), max(values)
    room = math.sqrt(max(1.0, LEAST_VALUES * low / high))
    return Axis(low / room, high * room, VALUE_PAD)


def value_ticks(axis: Axis) -> list[float]:
    return round_values(axis.low, axis.high, MOST_TICKS) if axis.high > axis.low else []


_RATIO_TICKS = (
    (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), (0.0625, 0.25, 1.0, 4.0, 16.0), (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    (0.5, 0.75, 1.0, 1.5, 2.0, 3.0), (0.6, 0.8, 1.0, 1.25, 1.5, 1.75), (0.8, 0.9, 1.0, 1.1, 1.2, 1.3),
    (0.9, 0.95, 1.0, 1.05, 1.1),
)  # fmt: skip


def ratio_ticks(axis: Axis) -> list[float]:
    """The closest ones of which few are on the axis."""
    sets = [[value for value in each if axis.low <= value <= axis.high] for each in _RATIO_TICKS]
    gaps = [min(_gaps(axis, each), default=100.0) for each in sets]
    fitting = [each for each, gap in zip(sets, gaps, strict=True) if gap >= 14 and len(each) > 1]
    return max(fitting, key=len, default=[1.0])


def _gaps(axis: Axis, values: Sequence[float]) -> Iterator[float]:
    return (axis.at(after) - axis.at(before) for before, after in pairwise(values))


def _text(value: float) -> str:
    return f"{value:.2f}"


@dataclass(frozen=True)
class _Drawing:
    answer: BenchAnswer
    values: Axis
    ratios: Axis
    compared: Sequence[BenchProduct]
    columns: Sequence[int]  # places of the labels that are shown
    lacking: Mapping[tuple[int, str], Lacking]

    def rows(self, places: Sequence[int]) -> Iterator[ForestRow]:
        before: tuple[str, ...] = ()
        for place in places:
            yield self.row(place, before)
            before = self.answer.rows[place].labels

    @property
    def middle(self) -> float:
        return _height(self.answer) / 2

    def row(self, at_row: int, before: tuple[str, ...]) -> ForestRow:
        """`before`: the labels of the row above."""
        row = self.answer.rows[at_row]
        colours = {product.product: product.colour for product in self.answer.products}
        names = {product.product: product.name for product in self.answer.products}
        known = sorted((cell for cell in row.cells if cell.mean > 0), key=lambda cell: cell.mean)
        xs = [self.values.at(cell.mean) for cell in known]
        marks = [
            ValueMark(_text(x), f"{self.middle + down:.1f}", colours[cell.product])
            for cell, x, down in zip(known, xs, moved_apart(xs, self.middle - EDGE_PX), strict=True)
        ]
        cells = {cell.product: cell for cell in row.cells}
        ratios = [
            cells[product.product]
            for product in self.compared
            if product.product in cells and cells[product.product].ratio
        ]
        at = [self.ratios.at(cell.ratio or 1.0) for cell in ratios]
        return ForestRow(
            name=row.name,
            labels=tuple(
                (row.labels[at], at != self.columns[-1] and row.labels[: at + 1] == before[: at + 1])
                for at in self.columns
            ),
            spoken=", ".join(f"{names[cell.product]} {cell.text}" for cell in row.cells),
            marks=tuple(marks),
            line=(_text(xs[0]), _text(xs[-1])) if len(xs) > 1 else ("", ""),
            lowest=Tick(_text(xs[0]), known[0].text) if len(xs) > 1 else Tick("", ""),
            highest=Tick(_text(xs[-1]), known[-1].text) if xs else Tick("", ""),
            ratios=tuple(
                self._ratio(row, cell, x, down)
                for cell, x, down in zip(ratios, at, _moved_in_order(at, self.middle - EDGE_PX), strict=True)
            ),
            texts=tuple(self._ratio_text(at_row, row, product, cells) for product in self.compared),
            place=at_row,
        )

    def _ratio(self, row: BenchRow, cell: BenchCell, x: float, down: float) -> RatioMark:
        ratio, unity = cell.ratio or 1.0, self.ratios.at(1.0)
        is_pair = len(self.compared) == 1
        is_better = (ratio > 1) is METRICS[row.metric].is_speed
        colours = {product.product: product.colour for product in self.answer.products}
        state = cell.state or RatioState.UNCLEAR
        has_bar = is_pair and state in (RatioState.DIFFERENT, RatioState.DRIFT, RatioState.ONCE)
        low, high = cell.whisker_low, cell.whisker_high
        ends = (self.ratios.at(low), self.ratios.at(high)) if low and high else (x, x)
        has_whisker = ends[1] - ends[0] > MARK_WIDE
        margin = 1 + self.answer.margin
        return RatioMark(
            x=_text(x),
            y=f"{self.middle + down:.1f}",
            caps=(f"{self.middle + down - CAP_PX:.1f}", f"{self.middle + down + CAP_PX:.1f}"),
            beyond="left" if ratio < self.ratios.low else "right" if ratio > self.ratios.high else "",
            shape=DIAMOND if is_pair else colours[cell.product],
            colour=colours[cell.product if is_better or not is_pair else self.answer.baseline],
            state=state.value,
            bar=(_text(min(x, unity)), _text(abs(x - unity))) if has_bar else ("", ""),
            is_inside=state is RatioState.ONCE and 1 / margin <= ratio <= margin,
            whisker=(_text(ends[0]), _text(ends[1])) if has_whisker else ("", ""),
            whisker_kind=cell.whisker if has_whisker else None,
        )

    def _ratio_text(
        self, place: int, row: BenchRow, product: BenchProduct, cells: Mapping[str, BenchCell]
    ) -> RatioText:
        cell, plan = cells.get(product.product), ""
        if cell is None:
            mixed = next((mixed_cell.choose for mixed_cell in row.mixed if mixed_cell.product == product.product), "")
            words = next(
                (absent.words for absent in row.missing if absent.product == product.product), Missing.NOT_MEASURED
            )
            lacking = self.lacking.get((place, product.product), NONE_LACKING)
            text, state, title, plan = mixed or words, "missing", lacking.why, lacking.plan
        elif cell.state is None:
            without = next((absent for absent in row.missing if absent.product == self.answer.baseline), None)
            text = "no baseline" if without else "not compared"
            state, title = "missing", ""
            plan = self.lacking.get((place, self.answer.baseline), NONE_LACKING).plan
        else:
            text, state, title = ratio_words(cell), cell.state.value, _title(cell)
        base = cells.get(self.answer.baseline)
        count = min(cell.n, base.n) if cell and base else self._most_repeats
        repeats = f"n = {count}" if count < self._most_repeats else ""
        return RatioText(text, state, title, plan, product.name, product.colour, repeats)

    @cached_property
    def _most_repeats(self) -> int:
        return max((cell.n for row in self.answer.rows for cell in row.cells), default=1)


def ratio_words(cell: BenchCell) -> str:
    """A ratio that is not claimed is not printed as if it were."""
    if cell.state is RatioState.EQUAL:
        return "equal"
    return "unclear" if cell.state is RatioState.UNCLEAR else cell.ratio_text


def _title(cell: BenchCell) -> str:
    if cell.whisker is Whisker.NOISE:
        low, high = cell.whisker_low or 1.0, cell.whisker_high or 1.0
        return f"{cell.ratio_text}, measured once; noise of the table {shown(low, RATIO)} to {shown(high, RATIO)}"
    if cell.state is RatioState.ONCE:
        return "Measured once"
    spread = f" ({cell.ratio_spread})" if cell.ratio_spread else ""
    return f"{cell.ratio_text}{spread}, n = {cell.n}. {cell.why}".strip()


def moved_apart(xs: Sequence[float], most: float) -> list[float]:
    """Pixels up or down, at most `most`, for marks in order, of which some nearly coincide."""
    downs: list[float] = []
    start = 0
    for place in range(1, len(xs) + 1):
        if place < len(xs) and xs[place] - xs[place - 1] < NEAR:
            continue
        count = place - start
        step = min(APART_PX, 2 * most / max(count - 1, 1))
        downs += [(each - (count - 1) / 2) * step for each in range(count)]
        start = place
    return downs


def _moved_in_order(xs: Sequence[float], most: float) -> list[float]:
    """The same for marks in any order."""
    order = sorted(range(len(xs)), key=lambda place: xs[place])
    downs = moved_apart([xs[place] for place in order], most)
    by_place = dict(zip(order, downs, strict=True))
    return [by_place[place] for place in range(len(xs))]


@dataclass(frozen=True)
class HeatCell:
    text: str
    colour: int  # of the faster product
    strength: int  # 0 to 5; 0 is not apart from the baseline
    state: str
    title: str


@dataclass(frozen=True)
class Heat:
    """The ratios of one product at all shared workloads of a pattern."""

    name: str
    product: BenchProduct
    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


STRENGTHS = (1.05, 1.15, 1.35, 1.75, 2.5)  # from these ratios on


def heats(answer: BenchAnswer) -> list[Heat]:
    colours = {product.product: product.colour for product in answer.products}
    return [
        Heat(
            name=grid.name, product=product, across=grid.across, down=grid.down, columns=grid.columns,
            rows=tuple(
                (label, tuple(_heat(answer, place, product.product, colours) for place in places))
                for label, places in grid.rows
            ),
        )
        for product in answer.products
        if product.product != answer.baseline
        for grid in answer.grids
    ]  # fmt: skip


def _heat(answer: BenchAnswer, place: int | None, product: str, colours: Mapping[str, int]) -> HeatCell | None:
    """None where a ratio is missing."""
    row = answer.rows[place] if place is not None else None
    cell = next((candidate for candidate in row.cells if candidate.product == product), None) if row else None
    if row is None or cell is None or not cell.ratio or cell.state is None:
        return None
    size = max(cell.ratio, 1 / cell.ratio)
    is_known = cell.state in (RatioState.DIFFERENT, RatioState.ONCE, RatioState.DRIFT)
    is_better = (cell.ratio > 1) is METRICS[row.metric].is_speed
    return HeatCell(
        text=cell.ratio_text.removeprefix("×"),
        colour=colours[product if is_better else answer.baseline] if len(answer.products) == 2 else colours[product],
        strength=sum(size >= limit for limit in STRENGTHS) if is_known else 0,
        state=cell.state.value,
        title=f"{row.name}: {_title(cell)}",
    )
