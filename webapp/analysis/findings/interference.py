"""Streams, or targets, that run at once against each of them alone: who is slower, and what the sum keeps.

From the shares of a run (`analysis.shares`), over all points that were measured in both ways. Each share is a contrast
with the interval of `analysis.claims`, and Holm's correction over all shares of the run. A stream pays if its share is
certainly below 1 and its whole interval is beyond the margin. Without one that pays, nothing is said. Of targets with
one workload, the sum is stated as scaling (`findings.scaling`); here only that one of them pays more than another,
beyond the margin and both intervals. Shares that may be drift, or whose streams hardly overlapped, say nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from webapp.analysis.answer import Comparison, Finding, FindingKind, Mark, Sentence
from webapp.analysis.claims import OF_SENTENCES, ContrastTest, claims, contrast, listed
from webapp.analysis.shares import Share
from webapp.analysis.words import in_sentence
from webapp.core.statistics import Ratio
from webapp.plans.factors import FACTORS, STREAM, STREAMS_ON

Group = tuple[tuple[str, ...], str]  # what ran at once, and whether on one target


@dataclass(frozen=True)
class _Remainder:
    """What streams keep of their speed alone. One, or several whose speeds are added."""

    shares: tuple[Share, ...]  # one for each point
    ratio: Ratio
    pays: bool

    @property
    def name(self) -> str:
        return " and ".join(self.shares[0].streams)

    @property
    def is_sum(self) -> bool:
        return len(self.shares[0].streams) > 1

    @property
    def words(self) -> str:
        low, high = self.ratio.low or 0.0, self.ratio.high or 0.0
        return f"{100 * self.ratio.value:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"


def find(shares: Sequence[Share], made: Comparison) -> Iterator[Finding]:
    """`made`: the comparison of the streams, for its margin and the marks."""
    for group, remainders in _groups(shares, made.margin).items():
        alone = [each for each in remainders if not each.is_sum]
        payers = [each for each in alone if each.pays]
        of_streams = STREAM in alone[0].shares[0].point
        if payers and (of_streams or _is_uneven(alone, made.margin)):
            yield _finding(group, alone, [each for each in remainders if each.is_sum], made)


def _groups(shares: Sequence[Share], margin: float) -> dict[Group, list[_Remainder]]:
    """Shares of one stream over all its points, tested together."""
    by_stream: dict[tuple[Group, tuple[str, ...], str], list[Share]] = {}
    for share in shares:
        if share.pair is not None and not share.cautions:
            group = share.together, str(share.point.get(STREAMS_ON, ""))
            by_stream.setdefault((group, share.streams, share.direction), []).append(share)
    contrasts = [contrast([share.pair for share in each if share.pair]) for each in by_stream.values()]
    claimed = claims([ContrastTest(each, each) for each in contrasts], margin, OF_SENTENCES)
    groups: dict[Group, list[_Remainder]] = {}
    for ((group, _, _), each), shown, claim in zip(by_stream.items(), contrasts, claimed, strict=True):
        pays = claim.different and (shown.ratio.high or 1.0) < 1 / (1 + margin)
        groups.setdefault(group, []).append(_Remainder(tuple(each), shown.ratio, pays))
    return {group: remainders for group, remainders in groups.items() if not all(each.is_sum for each in remainders)}


def _is_uneven(remainders: Sequence[_Remainder], margin: float) -> bool:
    highs, lows = [each.ratio.high or 1.0 for each in remainders], [each.ratio.low or 0.0 for each in remainders]
    return min(highs) * (1 + margin) < max(lows)


def _finding(group: Group, remainders: Sequence[_Remainder], sums: Sequence[_Remainder], made: Comparison) -> Finding:
    first, *others = sorted(remainders, key=lambda each: each.ratio.value)
    metrics = {each.shares[0].metric for each in remainders}
    subject = in_sentence(metrics.pop().label) if len(metrics) == 1 else "speed"
    missing = [name for name in group[0] if name not in {each.name for each in remainders}]
    beside = f"Beside {listed(missing)}" if missing else "At once"
    parts = [f"{beside}, {first.name} keeps {first.words} of its {subject} alone"]
    parts += [f"{each.name} {each.words}" for each in others]
    if len({each.name for each in remainders}) < len(remainders):  # of mixed reads and writes
        parts = [f"{part} ({each.shares[0].direction})" for part, each in zip(parts, (first, *others), strict=True)]
    sentence = Sentence((". ".join([f"{listed(parts)}{_points(first)}", *map(_sum, sums)]),))
    return Finding(
        kind=FindingKind.INTERFERENCE, **sentence.texts, single=False, size=-log(first.ratio.value),
        marks=tuple(_marks(remainders, made)), about=f"{made.metric}: {' + '.join(group[0])} {group[1]}".strip(),
    )  # fmt: skip


def _points(remainder: _Remainder) -> str:
    return f" ({len(remainder.shares)} points)" if len(remainder.shares) > 1 else ""


def _sum(remainder: _Remainder) -> str:
    """With values, if they are of one point."""
    share = remainder.shares[0]
    values = ""
    if len(remainder.shares) == 1 and share.pair:
        together, alone = (share.metric.format(cell.mean) for cell in share.pair)
        values = f": {together} together, {alone} alone"
    return f"The sum of {remainder.name} is {remainder.words}{values}"


def _marks(remainders: Sequence[_Remainder], made: Comparison) -> Iterator[Mark]:
    """The streams beside the others, in the charts that are by stream."""
    by = made.series_by[0] if made.series_by else ""
    wanted = {
        (share.streams[0], FACTORS[by].values.write(share.point[by]))
        for each in remainders
        for share in each.shares
        if by in FACTORS and by in share.point
    }
    for place, panel in enumerate(made.panels):
        for index, series in enumerate(panel.series):
            if (panel.key, series.key) in wanted and series.cells:
                levels = [cell.level for cell in series.cells]
                yield Mark(panel=place, series=index, first=min(levels), last=max(levels))
