"""The verdict of Bench: one sentence in large type, one line below it, and what weakens them.

It is made from the states of the ratios and from findings, so it states nothing that they do not carry. Of each pattern
it says one sentence about all shared workloads if they agree. Else it speaks along one series, such as the queue depths
at 4 KiB, which it names: which product is faster where, and from where on they are equal. Series that say something
else have a sentence of their own. For two products it names the better one with its ratio to the other, whichever the
baseline is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import log, log1p

from webapp.analysis.answer import FindingKind
from webapp.analysis.claims import MIN_BLOCKS
from webapp.analysis.conclusions import no_ratio
from webapp.analysis.equals import BLOCK
from webapp.analysis.findings.curves import COUNTED, counted
from webapp.analysis.question import MARGIN
from webapp.analysis.words import PERCENT, RATIO, in_sentence, label_in_sentence, shown
from webapp.bench.answer import BenchAnswer, BenchCell, BenchRow, ForestGroup, Verdict
from webapp.bench.forest import RatioState, telling_factors
from webapp.bench.rankings.standings import Lead, order_of
from webapp.bench.side_by_side import SideBySide
from webapp.bench.specifications import HOST
from webapp.bench.workloads import Workload, factor_words, level_text
from webapp.core.formatting import significant
from webapp.plans.engines import engine_of
from webapp.results.metrics import METRICS

ONE_RANGE = 1.25  # a stretch whose ratios differ by more is said at its first level
MOST_PARTS = 3  # of a sentence
MOST_LINES = 3


def verdict(comparison: SideBySide, answer: BenchAnswer) -> Verdict:
    names = [product.short for product in answer.products]
    if len(names) < 2:
        return _without(f"{names[0]}: choose a second product.")
    if not answer.forest:
        who = f"{names[0]} and {names[1]}" if len(names) == 2 else f"These {len(names)} products"
        if not comparison.workloads and all(any(row.metrics for row in rows) for rows in comparison.read.rows.values()):
            return _without(f"{who} share no workload with rates or latencies. Other values are compared in Explore.")
        return _without(f"Nothing to compare: {who} share no workload.")
    speakers = [speaker for group in answer.forest for speaker in _speakers(comparison, answer, group)]
    main = next((speaker for speaker in speakers if speaker.has_difference), speakers[0])
    others = [speaker for speaker in speakers if speaker is not main]
    lead, rest = _measured_once(main) if main.is_once else main.headline
    line = [*main.limit_words, *(sentence for speaker in others if (sentence := speaker.line))]
    more = [f"{len(line) - MOST_LINES + 1} more below."] if len(line) > MOST_LINES else []
    spoken_rows = [row for speaker in speakers for row in speaker.rows]
    return Verdict(
        lead=lead,
        rest=rest,
        line=(*(line[: MOST_LINES - 1] if more else line), *more),
        pills=tuple(_pills(comparison, spoken_rows)),
        repeats=_repeats(spoken_rows),
    )


def _speakers(comparison: SideBySide, answer: BenchAnswer, group: ForestGroup) -> Iterator["_Pair | _Several"]:
    """Of all shared workloads if they say the same. Else of the first series that says something, which names its
    levels, and of series that say something else."""

    kind: type[_Pair | _Several] = _Pair if len(answer.products) == 2 else _Several
    each = [kind(_Spoken(comparison, answer, group, places, group.axis)) for places in (group.series, *group.others)]
    whole = kind(_Spoken(comparison, answer, group, group.shared))
    if len(each) > 1 and whole.is_uniform:
        yield whole
        return
    main = next((one for one in each if one.has_difference), each[0])
    yield main
    unlike = [one for one in each if not one.said <= main.said]
    if len(unlike) == 1:
        yield unlike[0]
    elif unlike:
        places = [place for place in group.shared if place not in main.places]
        yield kind(_Spoken(comparison, answer, group, places, is_rest=True))


def _measured_once(speaker: "_Pair | _Several") -> tuple[str, str]:
    """The headline without a claim."""
    lead, rest = speaker.headline
    return (lead, f"{rest[:-1]}, measured once.") if rest else (f"{lead[:-1]}, measured once.", "")


def _without(lead: str) -> Verdict:
    return Verdict(lead=lead, rest="", line=(), pills=(), repeats="")


def _counts(rows: Sequence[BenchRow]) -> list[int]:
    return [cell.n for row in rows for cell in row.cells]


def _repeats(rows: Sequence[BenchRow]) -> str:
    fewest, most = min(_counts(rows), default=0), max(_counts(rows), default=0)
    if fewest < MIN_BLOCKS:
        return ""
    return f"{fewest} repeats" if fewest == most else f"{fewest} to {most} repeats"


def _pills(comparison: SideBySide, rows: Sequence[BenchRow]) -> Iterator[str]:
    counts = _counts(rows)
    if counts and max(counts) == 1:
        yield "Measured once"
    elif 1 in counts:
        yield "Partly measured once"
    elif counts and min(counts) < MIN_BLOCKS:
        yield "Too few repeats"
    if comparison.confounded and comparison.matched.compared:
        hosts = {known.get(HOST, ()) for known in comparison.facts if known}
        yield "Hosts differ" if len(hosts - {()}) > 1 else "Hosts may differ" if len(hosts) > 1 else "More differs"
    if any(cell.state is RatioState.DRIFT for row in rows for cell in row.cells):
        yield "May be drift"
    if any(cell.doubts for row in rows for cell in row.cells):
        yield "Doubtful values"


# Sentences along a series.


class _Sign(StrEnum):
    HIGHER = "higher"  # the ratio
    LOWER = "lower"
    EQUAL = "equal"
    UNCLEAR = "unclear"


_SIDES = (_Sign.HIGHER, _Sign.LOWER)


@dataclass(frozen=True)
class _Stretch:
    """Neighbouring rows of one sign: the places `first` to `last` of a series."""

    sign: _Sign
    first: int
    last: int


def _is_alike_once(cell: BenchCell) -> bool:
    """Whether values without an interval differ by no more than the margin."""
    return bool(cell.ratio) and cell.ratio_low is None and abs(log(cell.ratio or 1.0)) <= log1p(MARGIN)


@dataclass(frozen=True)
class _Spoken:
    """`places` of rows in the answer. Without an axis, several rows are said as a whole."""

    comparison: SideBySide
    answer: BenchAnswer
    group: ForestGroup
    places: Sequence[int]
    axis: str = ""
    is_rest: bool = False  # at other levels than the sentence before


class _Series:
    """The rows of one pattern about which a sentence is said."""

    def __init__(self, spoken: _Spoken) -> None:
        self.comparison, self.answer, self.group = spoken.comparison, spoken.answer, spoken.group
        self.axis, self.places, self._is_rest = spoken.axis, spoken.places, spoken.is_rest
        self.rows = [self.answer.rows[place] for place in self.places]
        self.metric = METRICS[self.rows[0].metric]
        pattern, _, self._other = self.group.name.partition(", ")
        self._plural = f"{in_sentence(pattern)}{'s' if pattern.endswith(('read', 'write')) else ''}"
        self._alike = self._common_levels()

    def _common_levels(self) -> list[str]:
        """The factors that tell workloads of this pattern apart and have one level in these rows."""
        shared = [self._workload(self.answer.rows[place]) for place in self.group.shared]
        names = telling_factors(shared) if len(shared) > 1 else []
        if factor_words(BLOCK) in self.answer.label_columns:
            names = [BLOCK, *(name for name in names if name != BLOCK)]
        mine = [self._workload(row) for row in self.rows]
        return [
            name for name in names if name != self.axis and len({workload.point.get(name) for workload in mine}) == 1
        ]

    def _workload(self, row: BenchRow) -> Workload:
        return self.comparison.matched.workloads[row.key]

    @property
    def is_once(self) -> bool:
        """Whether all values were measured once: they support no claim."""
        return bool(self.rows) and max(_counts(self.rows)) == 1

    @property
    def where_all(self) -> str:
        """`random reads of 4 KiB (psync)`; without the levels that all rows of the plot have."""
        point = self._workload(self.rows[0]).point if self.rows else {}
        size = f" of {level_text(BLOCK, point[BLOCK])}" if BLOCK in self._alike and BLOCK in point else ""
        named = [name for name in self._alike if name != BLOCK] if self.rows and not self._is_rest else []
        inside = ", ".join(
            filter(None, (self._other, *(_level_words(name, self._workload(self.rows[0])) for name in named)))
        )
        words = f"{self._plural}{size}{f' ({inside})' if inside else ''}"
        if self._is_rest:
            return f"{words} at other levels"
        alone = self.axis and len(self.rows) == 1
        return f"{words} at {self.level(0)}" if alone else words

    def level(self, place: int, *, bare: bool = False) -> str:
        """`queue depth 8`, `8 jobs`, `64 KiB`; `bare`: 8, because the sentence named the factor before."""
        workload = self._workload(self.rows[place])
        if bare and self.axis in workload.point:
            return level_text(self.axis, workload.point[self.axis])
        return _level_words(self.axis, workload)

    def where(self, first: int, last: int, *, bare: bool = False) -> str:
        """`at queue depth 1`, `up to 8 jobs`, `from 64 KiB on`, `at all 7 queue depths`"""
        end = len(self.rows) - 1
        if end == 0:
            return ""
        if first == last:
            return f"at {self.level(first, bare=bare)}"
        if first == 0:
            number = (
                f"{end + 1} of {len(self.places)}"
                if end + 1 < len(self.places)
                else "both"
                if end == 1
                else f"all {end + 1}"
            )
            plural = _plural(self.axis) if self.axis else "workloads"
            return f"up to {self.level(last, bare=bare)}" if last < end else f"at {number} {plural}"
        start = f"from {self.level(first, bare=bare)}"
        return f"{start} on" if last == end else f"{start} to {self.level(last, bare=True)}"


def _level_words(name: str, workload: Workload) -> str:
    """`queue depth 8`, `8 jobs`, `64 KiB`, `psync`, `target storage1/nvme0`"""
    label = label_in_sentence(name, factor_words(name))
    if name not in workload.point:
        return f"{label} not stated"
    text = level_text(name, workload.point[name])
    if name in COUNTED:
        return counted(name, text)
    return text if engine_of(workload.point).NAMED_BY.get(name) == "{}" else f"{label} {text}"


def _plural(axis: str) -> str:
    if axis in COUNTED:
        return f"numbers of {COUNTED[axis]}"
    words = label_in_sentence(axis, factor_words(axis))
    return f"{words}s"


class _Pair(_Series):
    """Two products."""

    def __init__(self, spoken: _Spoken) -> None:
        super().__init__(spoken)
        self.compared, self.base = sorted(
            self.answer.products, key=lambda product: product.product == self.answer.baseline
        )
        cells = [next((c for c in row.cells if c.product == self.compared.product), None) for row in self.rows]
        known = [(row, cell) for row, cell in zip(self.rows, cells, strict=True) if cell and cell.ratio]
        self.rows = [row for row, _ in known]
        self.cells = [cell for _, cell in known]

    @property
    def said(self) -> frozenset[str]:
        return frozenset(sign for cell in self.cells if (sign := _sign(cell)) in _SIDES)

    @property
    def has_difference(self) -> bool:
        return bool(self.said)

    @property
    def is_uniform(self) -> bool:
        """Whether one sentence is true of all rows."""
        return not self.said or len({_sign(cell) for cell in self.cells}) == 1

    @property
    def _is_partly(self) -> bool:
        """Whether some rows of the series are not compared; one row alone is named."""
        return 1 < len(self.rows) < len(self.places)

    @property
    def stretches(self) -> list[_Stretch]:
        """Without a claim, neighbours are one stretch: equal if all are; at the end of the series, from where all
        further ones are."""
        made: list[_Stretch] = []
        place = 0
        for is_side, cells in groupby(map(_sign, self.cells), key=lambda sign: sign in _SIDES):
            signs, start = list(cells), place
            place += len(signs)
            if is_side:
                made += self._by_sign(signs, start)
                continue
            unclear = max((at for at, sign in enumerate(signs) if sign is _Sign.UNCLEAR), default=-1)
            is_end = place == len(self.cells)
            if unclear < 0 or (is_end and len(signs) - unclear > 2):
                made.append(_Stretch(_Sign.EQUAL, start + unclear + 1, place - 1))
            elif is_end and made:
                made.append(_Stretch(_Sign.UNCLEAR, start, place - 1))
        return made

    def _by_sign(self, signs: Sequence[_Sign], start: int) -> Iterator[_Stretch]:
        for sign, cells in groupby(signs):
            count = len(list(cells))
            yield _Stretch(sign, start, start + count - 1)
            start += count

    @property
    def headline(self) -> tuple[str, str]:
        names = f"{self.compared.short} and {self.base.short}"
        if not self.cells:
            return f"{names} are not compared in {self.where_all}.", ""
        if not self.has_difference:
            where = f"{self.where_all} {self.where(0, len(self.rows) - 1)}" if self._is_partly else self.where_all
            if all(_is_alike_once(cell) for cell in self.cells):
                return f"{names} showed a difference of at most {100 * MARGIN:g} % in {where}.", ""
            if all(_sign(cell) is _Sign.EQUAL for cell in self.cells):
                return f"{names} are equal within {100 * MARGIN:g} % in {where}.", ""
            return f"Unclear which is better in {where}: {names}.", ""
        parts = self._parts()
        limit = ": both at the limit they share" if self.limit else ""
        rest = f"{', '.join(parts[1:])}{limit}." if len(parts) > 1 else ""
        return f"{parts[0]}{',' if rest else '.'}", rest

    @property
    def limit_words(self) -> list[str]:
        """`Both stop at 52.5k IOPS.`"""
        unit = f" {self.metric.label}" if self.metric.key == "iops" else ""
        return [f"Both stop at {self.metric.format(self.limit)}{unit}."] if self.has_difference and self.limit else []

    @property
    def line(self) -> str:
        if not self.cells:
            return ""
        where = f"{self.where_all[:1].upper()}{self.where_all[1:]}"
        if self.has_difference:
            limit = ", at a limit they share" if self.limit else ""
            return f"{where}: {', '.join(self._parts(short=True))}{limit}."
        equal = all(_sign(cell) is _Sign.EQUAL for cell in self.cells)
        where = f"{where} {self.where(0, len(self.rows) - 1)}" if self._is_partly else where
        return f"{where}: {'equal' if equal else 'no clear difference'}."

    def _parts(self, *, short: bool = False) -> list[str]:
        """Each difference with the name of the better product, unless the one before has the same. `short`: where all
        of them are is said before."""
        stretches = self.stretches
        inside = "" if short else f" in {self.where_all}"
        if len(stretches) > MOST_PARTS or not (self.axis or self.is_uniform):
            counts = {sign: sum(_sign(cell) is sign for cell in self.cells) for sign in _SIDES}
            better, other = sorted(_SIDES, key=lambda sign: (-counts[sign], sign is not self._better_sign))
            good, bad = ("faster", "slower") if self.metric.is_speed else ("better", "worse")
            behind = f" and {bad} at {counts[other]}" if counts[other] else ""
            of_all = f"of {len(self.cells)} workloads"
            return [f"{self._better(better)}: {good} at {counts[better]}{behind} {of_all}{inside}"]
        sides = [stretch for stretch in stretches if stretch.sign in _SIDES]
        parts: list[str] = []
        named = ""
        for stretch in stretches:
            bare = bool(parts)
            is_side = stretch.sign in _SIDES
            who = self._better((stretch if is_side else sides[0]).sign)
            name = f"{who}{'' if short else ':'} " if who != named and (is_side or not (parts or short)) else ""
            if is_side:
                is_first = stretch is sides[0]
                part = self._difference(stretch, inside * is_first, bare=bare, short=short or not is_first)
            else:
                words = "equal" if stretch.sign is _Sign.EQUAL else "no clear difference"
                part = f"{words} {self.where(stretch.first, stretch.last, bare=bare)}"
            parts.append(f"{name}{part}")
            named = who if name else named
        return parts

    @property
    def _better_sign(self) -> _Sign:
        """Of the ratio of `compared` where it is the better one."""
        return _Sign.LOWER if self.metric.lower_is_better else _Sign.HIGHER

    def _better(self, sign: _Sign) -> str:
        return (self.compared if sign is self._better_sign else self.base).short

    def _difference(self, stretch: _Stretch, inside: str, *, bare: bool, short: bool) -> str:
        """`1.94× as fast in random reads at queue depth 1`"""
        known = [cell.ratio or 1.0 for cell in self.cells[stretch.first : stretch.last + 1]]
        ratios = known if stretch.sign is self._better_sign else [1 / ratio for ratio in known]
        is_whole = max(ratios) <= ONE_RANGE * min(ratios) or len(self.stretches) == 1
        at_end = stretch.last == len(self.cells) - 1 and stretch.first > 0
        place = stretch.last if at_end else stretch.first  # the end of the series, if it is not said as a whole
        values = ratios if is_whole else ratios[-1:] if at_end else ratios[:1]
        where = self.where(stretch.first, stretch.last, bare=bare) if is_whole else self.where(place, place, bare=bare)
        return " ".join(filter(None, (f"{self._amount(values, short=short)}{inside}", where)))

    def _amount(self, ratios: Sequence[float], *, short: bool) -> str:
        """Of the better product: `1.29× to 1.31× as fast`, `12 % faster`; the form is that of the plot."""
        ends = sorted((min(ratios), max(ratios)), key=lambda ratio: abs(log(ratio)))
        if all("×" in cell.ratio_text for cell in self.cells):
            text = " to ".join(dict.fromkeys(f"{significant(each)}×" for each in sorted(ends)))
            if self.metric.is_speed:
                return text if short else f"{text} as fast"
            return f"{text} the {in_sentence(self.metric.label)}"
        amounts = dict.fromkeys(shown(each, PERCENT).lstrip("+−").removesuffix(" %") for each in ends)
        words = "faster" if self.metric.is_speed else f"{'higher' if ends[0] > 1 else 'lower'} {self.metric.short}"
        return f"{' to '.join(amounts)} % {words}"

    @property
    def limit(self) -> float | None:
        """Where both stop, if a finding says so of the equal rows."""
        last = self.stretches[-1]
        if last.sign is not _Sign.EQUAL or last.first == 0:
            return None
        keys = [row.key for row in self.rows]
        for curve, finding in self.comparison.seen:
            if (
                finding.kind is FindingKind.CEILING
                and finding.value
                and finding.level is not None
                and curve.panel.metric.key == self.metric.key
                and len({mark.series for mark in finding.marks}) > 1
                and curve.panel.name == self.group.name
                and set(keys) <= set(curve.keys)
                and finding.level <= curve.keys.index(keys[last.first])
            ):
                return finding.value
        return None


_KNOWN = (RatioState.DIFFERENT, RatioState.DRIFT, RatioState.ONCE)  # a pill says that drift or chance may be the cause


def _sign(cell: BenchCell) -> _Sign:
    """A difference that is smaller than the margin is not worth a sentence, nor one within the noise of a table."""
    ratio = cell.ratio or 1.0
    if cell.state is RatioState.EQUAL or (cell.state is RatioState.ONCE and _is_alike_once(cell)):
        return _Sign.EQUAL
    if (
        cell.state is RatioState.ONCE
        and cell.whisker_low
        and cell.whisker_high
        and cell.whisker_low <= 1 <= cell.whisker_high
    ):
        return _Sign.UNCLEAR
    if cell.state in _KNOWN and abs(log(ratio)) > log1p(MARGIN):
        return _Sign.HIGHER if ratio > 1 else _Sign.LOWER
    return _Sign.UNCLEAR


class _Several(_Series):
    """Three products or more: who leads where."""

    limit_words: tuple[str, ...] = ()

    def __init__(self, spoken: _Spoken) -> None:
        super().__init__(spoken)
        self.names = {product.product: product.short for product in self.answer.products}
        self.leaders = [self._leading(row) for row in self.rows]

    def _leading(self, row: BenchRow) -> tuple[str, ...]:
        """The product that is better than each other one, by the rule of Rankings: it does not depend on the baseline.
        All products if there is none."""
        matched, products = self.comparison.matched, tuple(cell.product for cell in row.cells)
        panel = next(panel for panel in matched.panels if panel.metric == self.metric and panel.name == self.group.name)
        values = [matched.measured[panel.key, product, row.key] for product in products]
        order = order_of([[value] for value in values], lower_is_better=row.lower_is_better)
        first = order.ranked[0].place
        others = [value for place, value in enumerate(values) if place != first]
        is_lead = order.lead is Lead.CLAIMED or (order.lead is Lead.SEEN and self.is_once)  # the sentence says so
        leads = is_lead and not any(no_ratio(values[first], other) for other in others)
        return (products[first],) if leads else products

    @property
    def said(self) -> frozenset[tuple[str, ...]]:
        known = zip(self.leaders, self.rows, strict=True)
        return frozenset(leading for leading, row in known if len(leading) < len(row.cells))

    @property
    def has_difference(self) -> bool:
        return bool(self.said)

    @property
    def is_uniform(self) -> bool:
        """Whether one sentence is true of all rows."""
        return not self.said or len({*self.leaders}) == 1

    @property
    def headline(self) -> tuple[str, str]:
        if not self.has_difference:
            return f"No product leads in {self.where_all}.", ""
        parts = self._parts
        lead = f"{self._word.capitalize()} in {self.where_all}: {parts[0]}"
        if len(parts) == 1:
            return f"{lead}{',' if self._against else '.'}", self._against
        return f"{lead},", f"{', '.join(parts[1:])}."

    @property
    def line(self) -> str:
        where = f"{self.where_all[:1].upper()}{self.where_all[1:]}"
        if not self.has_difference:
            return f"{where}: no product leads."
        parts = self._parts
        return f"{where}: {parts[0]}{f', {parts[-1]}' if len(parts) > 1 else ''}."

    @property
    def _word(self) -> str:
        return "fastest" if self.metric.is_speed else f"lowest {self.metric.short}"

    @property
    def _parts(self) -> list[str]:
        """`A and B up to 10 jobs`, `C at 40 jobs`"""
        if not self.axis and len({*self.leaders}) > 1:
            counts = Counter(leading for leading in self.leaders if leading in self.said)
            first, *others = [
                f"{self._listed(leading)} at {count}" for leading, count in counts.most_common(MOST_PARTS)
            ]
            return [f"{', '.join((first, *others))} of {len(self.rows)} workloads"]
        stretches, place = [], 0
        for leading, rows in groupby(self.leaders):
            count = len(list(rows))
            stretches.append((leading, place, place + count - 1))
            place += count
        if len(stretches) > MOST_PARTS:
            stretches = [stretches[0], stretches[-1]]
        if len(stretches) == 1:
            return [self._listed(stretches[0][0])]
        return [
            f"{self._listed(leading)} {self.where(first, last, bare=place > 0)}"
            for place, (leading, first, last) in enumerate(stretches)
        ]

    def _listed(self, products: Sequence[str]) -> str:
        return self.names[products[0]] if len(products) == 1 else "no leader"

    @property
    def _against(self) -> str:
        """The ratio of the only leader to the baseline."""
        leading = self.leaders[0]
        if len(leading) != 1 or leading[0] == self.answer.baseline:
            return ""
        cells = [next(cell for cell in row.cells if cell.product == leading[0]) for row in self.rows]
        ratios = [cell.ratio for cell in cells if cell.ratio]
        if len(ratios) < len(cells):
            return ""
        texts = list(dict.fromkeys(shown(each, RATIO) for each in (min(ratios), max(ratios))))
        return f"{' to '.join(texts)} of {self.names[self.answer.baseline]}."
