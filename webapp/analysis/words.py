"""Conclusions of a comparison as sentences, with their uncertainty. The first number is the result."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from webapp.analysis.answer import DIFFERENCES, ONCE, BaselineRatio, Conclusion, Sentence, Texts
from webapp.analysis.claims import MIN_BLOCKS, OF_POINTS, OF_SENTENCES, UNKNOWN_ORDER, Claim, Side
from webapp.core.formatting import ratio as as_ratio
from webapp.core.statistics import Ratio
from webapp.results.metrics import Metric

RATIO, PERCENT = "ratio", "percent"
NONE = ("0.0 %", "×1.00")  # as `shown` shows a difference that it rounds away
TIME_UNITS = ("ms", "s", "min", "h", "d")
_NO_TIMES = "imported files do not state when they were measured"
MAX_PERCENT = 1000  # more is shown as a factor: ×6,175 is readable, +617,427 % is not


def form_of(values: Sequence[float]) -> str:
    """The form of a ratio column: percent, or ratios if any value doubles or halves."""
    exact = 1 + 1e-9  # a ratio is the exponential of a logarithm: 0.5 may be 0.50000000001
    return RATIO if any(max(value, 1 / value) * exact >= 2 for value in values) else PERCENT


def shown(value: float, form: str) -> str:
    """×2.60, or −38 %."""
    percent = (value - 1) * 100
    if form == RATIO or percent > MAX_PERCENT:
        return as_ratio(value)
    sign = "" if _amount(percent) in ("0.0", "0") else "+" if percent > 0 else "−"
    return f"{sign}{_amount(percent)} %"


def _amount(percent: float) -> str:
    """Without a sign: one decimal below 10 %, none from 10 %."""
    magnitude = abs(percent)
    return f"{magnitude:.1f}" if magnitude < 9.95 else f"{magnitude:,.0f}"


def interval(ratio: Ratio, form: str) -> str:
    """Low to high, rounded outwards; "" without an interval."""
    if ratio.low is None or ratio.high is None:
        return ""
    low, high = _outwards(ratio.low, form, math.floor), _outwards(ratio.high, form, math.ceil)
    return f"{shown(low, form)} to {shown(high, form)}"


def _outwards(value: float, form: str, whole: Callable[[float], int]) -> float:
    """Rounded to the digits that `shown` shows, so that no interval looks narrower than it is, or like 0.0 to 0.0."""
    percent = 100 * (value - 1)
    if form == RATIO or percent > MAX_PERCENT:
        digits = 100.0 if value < 9.995 else 10.0 ** (2 - math.floor(math.log10(value)))
        return whole(round(digits * value, 6)) / digits
    digits = 10 if abs(percent) < 9.95 else 1
    return 1 + whole(round(percent * digits, 6)) / digits / 100


def unclear(against: BaselineRatio) -> str:
    """Why a ratio has no colour."""
    if against.n < MIN_BLOCKS:
        return f"n = {against.n}: too few repeats for a conclusion."
    if against.equal:
        return "No difference beyond the margin."
    if against.conclusion is Conclusion.MAY_BE_DRIFT:
        return "May be drift: the series always ran in the same order, or the order is unknown."
    if against.conclusion is Conclusion.MAY_BE_MODES:
        return f"May be chance: {two_speeds(against.n)}."
    low, high = against.ratio.low, against.ratio.high
    if low is not None and high is not None and not low <= 1 <= high:
        return (
            "May be chance: a claim is stricter than this interval of 95 %. All points of a page together have a "
            f"chance of {100 * OF_POINTS:g} % of a false claim, its sentences of {100 * OF_SENTENCES:g} %."
        )
    return "May be chance."


def in_sentence(label: str) -> str:
    """A label inside a sentence: `queue depth`, but `IOPS` and `I/O scheduler`."""
    return label if label[:2].isupper() or label[1:2] == "/" else f"{label[:1].lower()}{label[1:]}"


def unstated_sentence(name: str, labels: Iterable[str]) -> str:
    """`labels` of the factors that an import does not state, of the points at which it is compared."""
    return f"{name} does not state {', '.join(map(in_sentence, labels))}: its values stand at the levels of the others."


def apart(names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The parts that all names of levels have, and each name without them: of `a · 4 KiB · psync` and
    `a · 4 KiB · io_uring`, `a · 4 KiB` and the two engines. Unchanged if nothing else is left of a name."""
    parts = [name.split(" · ") for name in names]
    shared = [part for part in parts[0] if all(part in others for others in parts[1:])] if parts else []
    rest = tuple(" · ".join(part for part in of_name if part not in shared) for of_name in parts)
    return (" · ".join(shared), rest) if all(rest) else ("", tuple(names))


def label_in_sentence(name: str, label: str) -> str:
    """The label of a dimension. A label of an import, whose dimension ends with it, is never changed."""
    return label if name.endswith(label) else in_sentence(label)


def _same(ratio: float, form: str, what: str, baseline: str) -> str:
    """`the same IOPS as A`, `almost the same IOPS as A` if the difference is rounded away; "" for other ratios."""
    if shown(ratio, form) not in NONE:
        return ""
    return f"{'' if math.isclose(ratio, 1, rel_tol=1e-9) else 'almost '}the same {what} as {baseline}"


def certainty(ratio: Ratio | None, n: int, form: str) -> str:
    """`95 % CI ×1.2 to ×1.4, n = 3`, `measured once`"""
    known = interval(ratio, form) if ratio else ""
    if not known:
        return ONCE if n == 1 else f"n = {n}"
    few = ": too few repeats" if n < MIN_BLOCKS else ""
    return f"95 % CI {known}, n = {n}{few}"


def order_notes(orders: Collection[str]) -> Iterator[str]:
    """What the orders of several comparisons (`claims.same_order`) leave open."""
    if UNKNOWN_ORDER in orders:
        yield "Imported files do not state when they were measured. Drift of the host can look like a difference."
    if set(orders) - {UNKNOWN_ORDER, ""}:
        yield (
            "Two or more series always ran in the same order, on average over their points, as in a listed plan or in "
            "runs one after another. Drift of the host can then look like a difference. A randomised plan with all "
            "series and more repeats, or three runs of each in turns, can tell drift from a difference."
        )


def two_speeds(n: int) -> str:
    """Why a difference may be chance if `claims.may_be_modes`."""
    return f"{n} repeats do not exclude a system with two speeds"


@dataclass(frozen=True)
class Sentences:
    """Of the page and of a headline. Both make one claim."""

    page: str = ""
    conclusion: Conclusion = Conclusion.NONE
    headline: Texts = field(default_factory=lambda: Sentence(()).texts)


@dataclass(frozen=True)
class Statement:
    """What is known of one series against the baseline. The properties are parts of sentences."""

    name: str
    baseline: str
    metric: Metric
    form: str  # ratio | percent
    margin: float
    ratio: Ratio | None  # over the points that are not set apart
    claim: Claim
    n: int
    points: int  # in the ratio
    common: int  # points that both series have
    total: int  # points that either series has
    apart: tuple[str, ...]  # such as "×0.00 at 4 KiB"
    different: tuple[float, ...]  # ratios of points that differ for certain
    measured: tuple[float, ...]  # ratios of all points in the ratio
    order: str  # before | after: it always ran so; UNKNOWN_ORDER; "" if the order changed
    compared: int  # comparisons on the page that were corrected together
    opposites: tuple[Side, Side] | None  # higher and lower, if points differ for certain in both directions
    single: tuple[str, str] | None = None  # baseline and series, if both have one value in all
    modes: bool = False  # claims.may_be_modes

    @property
    def sentence(self) -> Sentence:
        if self.ratio is None:
            return Sentence((f"{self.name} and {self.baseline} {self._no_points}",))
        if self.single:
            return self._of_single_values(self.ratio.value, *self.single)
        if self.opposites:
            words = f"{self._both_sides(*self.opposites)}{''.join(f'; {text}' for text in self.apart)}"
            return Sentence((words,), self._doubt)
        sure = certainty(self.ratio, self.n, self.form)
        over, rest = f"{self._over}{self._small}", "".join(f"; {text}" for text in self.apart) + self._caution
        certain = self._certain_points
        parts = (over, certain, rest) if certain else (f"{over}{rest}",)
        return Sentence((self._result, sure, *parts), self._doubt if self.claim.different else "")

    def _of_single_values(self, ratio: float, before: str, after: str) -> Sentence:
        """`new took ×0.09 the time of old (348 min → 30 min, measured once).`"""
        observation = self._observation
        if self.metric.shown_as == "entered":
            verb, what = ("took", "time") if self._is_time else ("showed", self._what)
            relation = _same(ratio, RATIO, what, self.baseline) or f"{as_ratio(ratio)} the {what} of {self.baseline}"
            observation = f"{self.name} {verb} {relation}"
        return Sentence((observation, f"{before} → {after}, {ONCE}"))

    @property
    def _is_time(self) -> bool:
        return self.metric.lower_is_better and self.metric.unit in TIME_UNITS

    @property
    def conclusion(self) -> Conclusion:
        """Of `sentence`."""
        is_rounded_away = self.claim.equal and self._value in NONE  # else: 0.0 % faster
        different = bool(self.opposites) or (self.claim.different and not is_rounded_away)
        return replace(self.claim, different=different).conclusion(self.order, modes=self.modes)

    @property
    def sentences(self) -> Sentences:
        """Without a claim, all headlines have one form: two runs of one plan differ in it only if their claims do."""
        is_neutral = self.conclusion is Conclusion.NONE and not self.single
        texts = self.sentence.texts
        return Sentences(texts["sentence"], self.conclusion, self.neutral.texts if is_neutral else texts)

    @property
    def neutral(self) -> Sentence:
        """`kyber and none showed no certain difference in IOPS (+1.0 %, 95 % CI −2.1 % to +4.2 %, n = 5), 8 points.`"""
        if self.ratio is None:
            return self.sentence
        words = f"{self.name} and {self.baseline} showed no certain difference in {self._what}"
        sure = certainty(self.ratio, self.n, self.form)
        return Sentence((words, f"{self._value}, {sure}", self._over))

    @property
    def _no_points(self) -> str:
        return f"are {'; '.join(self.apart)}" if self.apart else "share no test points"

    @property
    def _result(self) -> str:
        if self.conclusion in DIFFERENCES:
            return self._difference
        if self.conclusion is Conclusion.EQUAL:
            return f"{self.name} and {self.baseline} differ by less than {100 * self.margin:g} % in {self._what}"
        if self.n < MIN_BLOCKS or self._uncorrected:
            return self._observation
        return f"The repeats cannot tell {self.name} from {self.baseline} in {self._what}"

    def _both_sides(self, higher: Side, lower: Side) -> str:
        """`B is faster than A at 4 KiB (+50 %), slower at 1 MiB (−40 %)`: no mean over both."""
        above, below = (f"at {side.where} ({self._range(side.ratios)})" for side in (higher, lower))
        rest = self.points - higher.points - lower.points
        uncertain = f"; no certain difference at {rest} other point{'s' if rest > 1 else ''}" if rest else ""
        if self.metric.is_speed:
            return f"{self.name} is faster than {self.baseline} {above}, but slower {below}{uncertain}"
        what = self._what
        return f"{self.name} has higher {what} than {self.baseline} {above}, but lower {what} {below}{uncertain}"

    def _range(self, values: Sequence[float]) -> str:
        low, high = shown(min(values), self.form), shown(max(values), self.form)
        return low if low == high else f"{low} to {high}"

    @property
    def _uncorrected(self) -> bool:
        """The interval excludes 1, but there are too many comparisons for a claim."""
        low, high = (self.ratio.low, self.ratio.high) if self.ratio else (None, None)
        return low is not None and high is not None and not low <= 1 <= high and not self.claim.different

    @property
    def _difference(self) -> str:
        """A claim: `psync is 38 % slower than io_uring`, `psync has ×2.60 the p99 latency of io_uring`."""
        value = self.ratio.value if self.ratio else 1.0
        if self.metric.is_speed and self.form == PERCENT and (value - 1) * 100 <= MAX_PERCENT:
            amount = f"{_amount((value - 1) * 100)} %"
            return f"{self.name} is {amount} {'faster' if value > 1 else 'slower'} than {self.baseline}"
        return f"{self.name} has {self._relation}"

    @property
    def _observation(self) -> str:
        """Without a claim: `psync showed 38 % lower IOPS than io_uring`."""
        return f"{self.name} showed {self._relation}"

    @property
    def _relation(self) -> str:
        value = self.ratio.value if self.ratio else 1.0
        if same := _same(value, self.form, self._what, self.baseline):
            return same
        if self.form == RATIO or (value - 1) * 100 > MAX_PERCENT:
            return f"{as_ratio(value)} the {self._what} of {self.baseline}"
        amount = f"{_amount((value - 1) * 100)} %"
        return f"{amount} {'higher' if value > 1 else 'lower'} {self._what} than {self.baseline}"

    @property
    def _value(self) -> str:
        return shown(self.ratio.value, self.form) if self.ratio else ""

    @property
    def _what(self) -> str:
        label = self.metric.label
        return label if self.metric.shown_as == "entered" else in_sentence(label)  # a person typed an entered one

    @property
    def _over(self) -> str:
        """`, 47 of 49 points`: two are set apart. `, 2 common points of 49`: both series have only these two."""
        if self.total == 1:
            return ""
        inside = f"{self.points} of {self.common}" if self.points < self.common else f"{self.points}"
        kind, of_all = (" common", f" of {self.total}") if self.common < self.total else ("", "")
        return f", {inside}{kind} point{'' if self.common == 1 else 's'}{of_all}{self._points_range}"

    @property
    def _points_range(self) -> str:
        """The range of the points, unless they agree within the margin: their mean may describe none of them. Ranges of
        points that differ for certain are in `_certain_points`."""
        known = self.measured
        if self._certain_points and len(self.different) == len(known):
            return ""
        if len(known) < 2 or max(known) <= (1 + self.margin) * min(known):
            return ""
        return f" from {self._range(known)}"

    @property
    def _small(self) -> str:
        small = self.claim.different and self.claim.equal and self._value not in NONE
        return f", within ±{100 * self.margin:g} %" if small else ""

    @property
    def _certain_points(self) -> str:
        """`certain at 2 points: +46 % to +64 %`. "" if they may be drift and the mean does not warn of it."""
        if not self.different or self.points < 2 or (self.order and not self.claim.different):
            return ""
        is_all = len(self.different) == self.points
        number = ("both" if self.points == 2 else "all") if is_all else f"{len(self.different)}"
        return f"certain at {number} point{'' if number == '1' else 's'}: {self._range(self.different)}"

    @property
    def _caution(self) -> str:
        if self._uncorrected and self.n >= MIN_BLOCKS and not self.claim.equal:
            return f"; not certain{f' among {self.compared} comparisons' if self.compared > 1 else ''}"
        return ""

    @property
    def _doubt(self) -> str:
        if self.order == UNKNOWN_ORDER:
            return f"may be drift: {_NO_TIMES}"
        if self.order:
            return f"may be drift: {self.name} always ran {self.order} {self.baseline}"
        return f"may be chance: {two_speeds(self.n)}" if self.modes else ""


@dataclass(frozen=True)
class RangeStatement:
    """The lowest and the highest level of x, for a chart with one series."""

    metric: Metric
    margin: float
    low: str  # mean with its unit
    low_at: str  # level with the label of x
    high: str
    high_at: str
    claim: Claim
    n: int
    points: int
    order: str  # before | after: the highest always ran so; UNKNOWN_ORDER; "" if the order changed
    modes: bool  # claims.may_be_modes

    @property
    def sentences(self) -> Sentences:
        texts = (self._claimed if self.claim.different else self._unclaimed).texts
        return Sentences(texts["sentence"], self.claim.conclusion(self.order, modes=self.modes), texts)

    @property
    def _claimed(self) -> Sentence:
        why = _NO_TIMES if self.order == UNKNOWN_ORDER else "they always ran in the same order"
        chance = f"may be chance: {two_speeds(self.n)}" if self.modes else ""
        words = f"{self._values} over {self.points} points"
        return Sentence((words,), f"may be drift: {why}" if self.order else chance)

    @property
    def _values(self) -> str:
        return f"{self.metric.label} is between {self.low} ({self.low_at}) and {self.high} ({self.high_at})"

    @property
    def _unclaimed(self) -> Sentence:
        values = f"{self._values} at {self.points} points"
        if self.claim.equal:
            return Sentence((f"{values}: they differ by less than {100 * self.margin:g} %",))
        if self.n == 1:
            return Sentence((values, ONCE))
        if self.n < MIN_BLOCKS:
            return Sentence((values, f"n = {self.n}: too few repeats"))
        return Sentence((f"{values}: the repeats cannot tell them apart", f"n = {self.n}"))
