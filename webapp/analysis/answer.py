"""The structs of a comparison, which the API and pages send, and the same numbers as a table for files."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TypedDict

import msgspec
from msgspec import structs

from webapp.core.formatting import ShownAs, natural_key
from webapp.core.statistics import Ratio, Summary
from webapp.core.table_files import Column, Kind, Table

# A comparison: the structs that are computed here, sent by the API and to the page, and checked by its scripts
# (`dev/payload_types.py`). Values are in the metric's stored unit: 1/s, B/s, ns.


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGT]?)(i?)B\b", re.ASCII)


class DifferenceKind(StrEnum):
    CONFOUNDED = "confounded"  # differs between series, in addition to the factors that define the series
    POOLED = "pooled"  # has several levels in one cell: the mean covers all of them
    FOLLOWS = "follows"  # differs between series as a consequence of the factors that define the series
    ALONG_X = "along_x"  # changes together with x, in the same way in every series


MIN_TESTED = 3  # blocks on each side, for a test


class Conclusion(StrEnum):
    """The claim of a sentence, for programs that must not depend on its words."""

    DIFFERENT = "different"  # in both directions too: higher at some points, lower at others
    MAY_BE_DRIFT = "may_be_drift"  # different, or drift
    MAY_BE_MODES = "may_be_modes"  # different, or each level met one of two speeds of the system by chance
    EQUAL = "equal"  # no difference beyond the margin
    NONE = "none"


DIFFERENCES = (Conclusion.DIFFERENT, Conclusion.MAY_BE_DRIFT, Conclusion.MAY_BE_MODES)


def rank(conclusion: Conclusion, ratio: float | None) -> tuple[int, float]:
    """The place of a sentence, smallest first: differences by their size, equality, ratios without a claim, then what
    has no ratio."""
    if conclusion is Conclusion.NONE:
        return (len(Conclusion) - 1 if ratio else len(Conclusion)), 0.0
    return list(Conclusion).index(conclusion), -abs(math.log(ratio)) if ratio else 0.0


class RatioForm(StrEnum):
    RATIO = "ratio"  # ×2.60
    PERCENT = "percent"  # −38 %


class Struct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a comparison."""


class Level(msgspec.Struct, frozen=True, gc=False):
    """One value of a dimension: a level on x, a series or a panel. `number` is None if it is not a number."""

    key: str  # as in an address
    text: str
    number: float | None

    @property
    def order(self) -> tuple[bool, float, float, tuple[str | int, ...]]:
        """Numbers, then sizes that a label states (8 kB before 1 MB), then texts."""
        return self.number is None, self.number or 0.0, _bytes_of(self.text), natural_key(self.text)


def _bytes_of(label: str) -> float:
    """Of `256 kB` or `2 MB/256 kB`, the first size; infinite without one."""
    size = _SIZE.match(label)
    return float(size[1]) * (1024 if size[3] else 1000) ** " KMGT".index(size[2].upper() or " ") if size else math.inf


class Texts(TypedDict):
    """Fields of a conclusion, made by `Sentence`."""

    sentence: str
    claim: str  # without its interval and its doubt, and without a full stop
    certainty: str  # its interval and repeats, e.g. 95 % CI 7 % to 9 %, n = 3; "" if the claim states them
    doubt: str  # what else may explain it, e.g. may be chance: …; "" for nothing


@dataclass(frozen=True)
class Sentence:
    """A conclusion. `parts` are words and intervals in turns: intervals stand in brackets, and not in the claim."""

    parts: tuple[str, ...]
    doubt: str = ""

    @property
    def texts(self) -> Texts:
        words, intervals = self.parts[::2], self.parts[1::2]
        brackets = (f" ({text})" for text in intervals)
        stated = "".join(text for pair in zip_longest(words, brackets, fillvalue="") for text in pair)
        doubt = f" This {self.doubt}." if self.doubt else ""
        return {
            "sentence": f"{stated}.{doubt}" if stated else "",
            "claim": "".join(words),
            "certainty": "; ".join(intervals),
            "doubt": self.doubt,
        }


class Difference(Struct, frozen=True, kw_only=True):
    kind: DifferenceKind
    name: str  # of a factor or of a fact of the configuration
    label: str
    text: str  # a sentence


class BaselineRatio(Struct, frozen=True, kw_only=True):
    """A series divided by the baseline, at one chart point or as the geometric mean over several. `conclusion`,
    `better`, `equal` and `p` are corrected for the number of comparisons on the page (`analysis.claims`); the interval
    is not."""

    ratio: Ratio
    conclusion: Conclusion
    better: bool | None  # than the baseline; None if that may be chance or drift
    equal: bool  # the whole interval is inside the margin
    p: float  # corrected p-value of the difference: at most 0.025 for `different`; 1 with fewer than 3 blocks
    n: int  # blocks on the smaller side
    text: str  # ×2.60 or −38 %, the same form in the whole column
    interval_text: str  # ×2.41 to ×2.80, "" without an interval


class Cell(Struct, frozen=True, kw_only=True):
    """The repeats of one series at one chart point."""

    level: int  # index into the comparison's levels
    summary: Summary
    text: str  # the mean with its unit
    spread_text: str  # the interval with its unit; "n = 1" without an interval
    doubts: tuple[str, ...]  # reasons not to trust this number; usually none
    against_baseline: BaselineRatio | None
    other_rate: str = ""  # bandwidth beside IOPS and the reverse, with its unit, if block sizes vary
    results: int = 0  # that it is of
    lagging: int = 0  # of them, those that did not reach the IOPS that were asked
    lagging_beside: int = 0  # those beside a stream that did not reach its own


class Series(Struct, frozen=True, kw_only=True):
    key: str  # names the series as the baseline in an address
    name: str
    is_baseline: bool
    cells: tuple[Cell, ...]
    sentence: str  # the result against the baseline, or over x if it is the only series; else ""
    conclusion: Conclusion  # of the sentence
    headline: str  # the same claim in the words of a headline
    against_baseline: BaselineRatio | None  # over the chart points that both have, without those set apart
    points: int  # in that mean
    order: str  # contrasts.same_order: unless it is "", drift may look like a difference
    claim: str = ""  # of the headline, as in Texts; so are the next two
    certainty: str = ""
    doubt: str = ""


class Panel(Struct, frozen=True, kw_only=True):
    """One chart."""

    key: str
    name: str  # "" if it is the only one
    scaling: tuple[str, ...]  # sentences about several targets at once against one
    series: tuple[Series, ...]


class FindingKind(StrEnum):
    """What is seen along an axis, or between charts (`analysis.findings`)."""

    SATURATION = "saturation"  # more of x brings no more
    CEILING = "ceiling"  # several series stop at the same value
    SHARED_LIMIT = "shared_limit"  # several at once reach together what one reaches alone
    INTERFERENCE = "interference"  # a stream is slower beside others than alone
    ASYMMETRY = "asymmetry"  # one of several things that should be equal is not
    NOTHING_MORE = "nothing_more"  # a higher level of the series brings no more, at whatever x
    CAPPED = "capped"  # several at once scale up to a number, and bring no more beyond
    SCALING = "scaling"  # more of a count brings less and less, by a law
    GAP = "gap"  # a collapse inside a curve, which recovers
    OUTLIER = "outlier"  # one value out of line
    CLIFF = "cliff"  # a collapse from one level to the next, which stays
    CROSSING = "crossing"  # one series leads up to a level, the other one beyond
    TREND = "trend"  # each level is higher, or each is lower
    LINEAR = "linear"  # each unit of x adds the same amount
    PEAK = "peak"  # the highest value is inside the curve
    TRADE_OFF = "trade_off"  # better in one chart, worse in another
    MIX_COST = "mix_cost"  # writes among reads cost more than their share
    EFFECT = "effect"  # a ratio of two levels
    DIFFERENCE = "difference"  # a series differs from the baseline for certain
    EQUAL = "equal"  # series do not differ from the baseline beyond the margin
    UNCERTAIN = "uncertain"  # the repeats cannot tell series from the baseline
    INTERACTION = "interaction"  # a ratio of two levels that depends on x
    RATIOS = "ratios"  # of two levels, as measured: too few values to call them an effect
    GROWTH = "growth"  # what the largest load reaches against the smallest, as measured
    TOOL_EFFECT = "tool_effect"  # two tools disagree on one thing
    DIRECTION = "direction"  # writes faster than reads, or random far slower than sequential
    STANDOUT = "standout"  # one of many variants far from the others, which are alike
    NO_EFFECT = "no_effect"  # two levels differ by no more than a bound
    # Of a run against what was measured before (`past_findings`):
    CHANGED = "changed"  # it differs from the previous run of its plan
    UNCHANGED = "unchanged"  # it does not differ from it beyond the margin
    REFERENCE = "reference"  # against a published table of the same drive model
    # Of the seconds and counters of trials (`findings.recorded`):
    SETTLED = "settled"  # a trial ran at another speed at first
    UNSETTLED = "unsettled"  # a trial was not steady up to its end
    STALLED = "stalled"  # seconds near zero
    BOTTLENECK = "bottleneck"  # the device was idle while the processor was busy
    STOLEN = "stolen"  # the hypervisor took time of the processor
    IN_MEMORY = "in_memory"  # buffered writes had not reached the drive at the end
    HEAT = "heat"  # the speed fell when a drive was hot


class Mark(Struct, frozen=True, kw_only=True):
    """Points of a chart that are evidence: a stretch of one series."""

    panel: int  # index
    series: int  # index in the panel
    first: int  # index of the comparison's levels
    last: int


class CeilingMatch(Struct, frozen=True, kw_only=True):
    """A known ceiling at the value of a finding, in the unit of its metric. Values from `low` to `high` match it."""

    name: str
    value: float
    low: float
    high: float


class Finding(Struct, frozen=True, kw_only=True):
    """One conclusion from a chart or several. `single`: from values that were measured once."""

    kind: FindingKind
    sentence: str
    single: bool
    size: float  # of the effect, as the absolute value of ln(ratio)
    value: float | None = None  # where it is, in the unit of the metric: of a limit, for example
    level: int | None = None  # index of the comparison's levels: from or up to which it holds
    marks: tuple[Mark, ...] = ()
    about: str = ""  # tells it from others of its kind with the same marks: a metric, or a factor and its level
    matches: tuple[CeilingMatch, ...] = ()  # of a limit: the known ceilings at its value
    claim: str = ""  # as in Texts; so are the next two
    certainty: str = ""
    doubt: str = ""

    @property
    def texts(self) -> Texts:
        return {"sentence": self.sentence, "claim": self.claim, "certainty": self.certainty, "doubt": self.doubt}


class TrialSeconds(Struct, frozen=True, kw_only=True):
    """Seconds of a trial that are evidence."""

    trial: int  # number in its run
    from_s: int  # since the measured part began
    to_s: int


ONCE = "measured once"  # instead of an interval


def once(finding: Finding) -> Finding:
    """The finding, which says whether its values were measured once."""
    if not finding.single:
        return finding
    sentence = f"{finding.sentence.removesuffix('.')} ({ONCE})."
    return structs.replace(finding, sentence=sentence, certainty="; ".join(filter(None, (finding.certainty, ONCE))))


def after(name: str, texts: Texts) -> Texts:
    """The same conclusion after a name, such as that of its chart; "" for none. Names stay as people typed them."""
    if not name or not texts["sentence"]:
        return texts
    return {**texts, "sentence": f"{name}: {texts['sentence']}", "claim": f"{name}: {texts['claim']}"}


class Mixture(Struct, frozen=True, kw_only=True):
    """A dimension of which some points would cover several levels. Such a point has no value: choose a level."""

    name: str  # as in an address
    label: str
    levels: tuple[Level, ...]
    points: int


class Comparison(Struct, frozen=True, kw_only=True):
    metric: str
    metric_label: str
    shown_as: ShownAs  # formatter of the values
    unit: str
    lower_is_better: bool
    x: str
    x_label: str
    x_numeric: bool
    series_by: tuple[str, ...]
    series_label: str
    panel_label: str
    levels: tuple[Level, ...]  # on x
    panels: tuple[Panel, ...]
    baseline: str  # key of the series that the others are compared with
    ratio_as: RatioForm  # of the ratio column
    margin: float  # differences below it count as none: 0.05 is ±5 %
    verdict: str  # single-factor, or confounded by …: the conclusion from the differences
    single_factor: bool
    differs: tuple[Difference, ...]
    warnings: tuple[str, ...]  # why some values are not compared
    notes: tuple[str, ...]
    results: int  # number of results compared
    findings: tuple[Finding, ...] = ()  # the most important first
    mixtures: tuple[Mixture, ...] = ()  # why some points have no value
    same: tuple[str, ...] = ()  # conditions that all points share, in words


_FIGURES = ("geometric mean", "95 % CI low", "95 % CI high", "sd", "minimum", "maximum")
_RATIO = ("Ratio to the baseline", "Ratio 95 % CI low", "Ratio 95 % CI high", "Corrected p")

Key = tuple[int, int, int]  # panel, level, series


def comparison_table(comparison: Comparison) -> Table:
    """By panel, then level, then series, so that compared values are adjacent."""
    rows = (row for _, row in sorted(_rows(comparison), key=lambda item: item[0]))
    return Table(_columns(comparison), rows)


def _columns(comparison: Comparison) -> list[Column]:
    metric, unit = comparison.metric_label, comparison.unit
    return [
        Column(comparison.panel_label or "Chart"),
        Column(comparison.x_label),
        Column(comparison.series_label or "Series"),
        Column("Baseline", Kind.SWITCH),
        Column("n", Kind.INTEGER),
        *(Column(f"{metric} {figure} [{unit}]", Kind.NUMBER, unit) for figure in _FIGURES),
        *(Column(heading, Kind.NUMBER) for heading in _RATIO),
        Column("Within margin", Kind.SWITCH),
        Column("Conclusion"),
        Column("Doubts"),
    ]


def _rows(comparison: Comparison) -> Iterator[tuple[Key, Sequence[object]]]:
    for panel_index, panel in enumerate(comparison.panels):
        for series_index, series in enumerate(panel.series):
            for cell in series.cells:
                named = (panel.name or None, comparison.levels[cell.level].text, series.name or None)
                row = (*named, series.is_baseline, *_figures(cell), *_against(cell.against_baseline), _doubts(cell))
                yield (panel_index, cell.level, series_index), row


def _figures(cell: Cell) -> Sequence[object]:
    summary = cell.summary
    return summary.n, summary.mean, summary.low, summary.high, summary.sd, min(summary.values), max(summary.values)


def _against(baseline: BaselineRatio | None) -> Sequence[object]:
    if baseline is None:
        return (None,) * 6
    ratio, is_tested = baseline.ratio, baseline.n >= MIN_TESTED
    tested = (baseline.p, baseline.equal, baseline.conclusion) if is_tested else (None, None, None)
    return ratio.value, ratio.low, ratio.high, *tested


def _doubts(cell: Cell) -> str | None:
    return "; ".join(cell.doubts) or None
