"""Several targets or hosts at once: they scale up to a number, and bring no more beyond.

The first level is one alone. Up to the knee, each reaches `LINEAR` of its share of a straight line, and at least one
level does beyond one. From there on values differ by at most `SAME`, and the last level has at most `CAPPED` of its
share. (Two levels are a ratio, which the sentence of scaling says.)
"""

from collections.abc import Iterator
from math import log, log1p

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.findings.curves import Charts, Curve

AT_ONCE = ("at_once", "hosts_at_once")
LINEAR, SAME, CAPPED = 0.93, log1p(0.05), 0.75
FEWEST = 4
LEFT = 0.97  # the level before the cap is at most so much of it


def find(charts: Charts) -> Iterator[Finding]:
    if charts.comparison.x in AT_ONCE and charts.metric.adds_up:
        yield from (one for curve in charts.curves if (one := _capped(charts, curve)))


def _capped(charts: Charts, curve: Curve) -> Finding | None:
    if len(curve) < FEWEST or curve.xs[0] != 1:
        return None
    shares = [value / (x * curve.values[0]) for x, value in zip(curve.xs, curve.values, strict=True)]
    linear = max(place for place in range(len(shares)) if min(shares[: place + 1]) >= LINEAR)
    first = linear + 1
    if not 0 < linear < len(curve) - 2 or shares[-1] > CAPPED:
        return None
    tail = curve.logs[first:]
    slack = max(SAME, charts.least(curve, first, -1) if _has_repeats(charts, curve) else 0.0)
    if max(tail) - min(tail) > slack or curve.values[linear] > LEFT * curve.values[first]:
        return None
    cap = curve.mean(first, len(curve) - 1)
    sentence = (
        f"{charts.at(curve.levels[linear])} reach {100 * shares[linear]:.0f} % of linear scaling. "
        f"From {charts.at(curve.levels[first])} on, the sum stays at {charts.value(cap)} "
        f"({100 * shares[-1]:.0f} % of linear scaling with {charts.at(curve.levels[-1])})."
    )
    return charts.finding(
        FindingKind.CAPPED, sentence, [(curve, first, len(curve) - 1)], size=-log(shares[-1]), value=cap,
        level=curve.levels[first],
    )  # fmt: skip


def _has_repeats(charts: Charts, curve: Curve) -> bool:
    noise = charts.noise(curve)
    return bool(noise and noise.of_repeats)
