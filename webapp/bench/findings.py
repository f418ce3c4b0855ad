"""Conclusions: each product against the baseline, over all workloads of a pattern that both share."""

from collections.abc import Iterator
from dataclasses import dataclass

from webapp.bench.matching import Matched
from webapp.bench.panels import RATE, Panel
from webapp.bench.products import Product
from webapp.bench.workloads import assumed


@dataclass(frozen=True)
class Finding:
    panel: Panel
    sentence: str


def findings(matched: Matched, choice: str) -> Iterator[Finding]:
    for shown in dict.fromkeys((choice, RATE, matched.percentile)):
        for panel in matched.panels_of(shown):
            for product in matched.products:
                if sentence := matched.sentence(panel, product):
                    yield Finding(panel, " ".join((sentence, *_assumptions(matched, panel, product))))


def _assumptions(matched: Matched, panel: Panel, product: Product) -> Iterator[str]:
    """`Assumed of Old tests: QD 1, 1 job.` if an import states neither."""
    sides = (product, matched.baseline)
    shared = [
        one
        for one in matched.in_panel(panel)
        if all((panel.key, str(side), one.key) in matched.measured for side in sides)
    ]
    for side in sides:
        rows = ((one, row) for one in shared for row in matched.rows(panel, side, one.key) if row.imported)
        texts = dict.fromkeys(text for one, row in rows for text in assumed(one, row.point))
        if texts:
            yield f"Assumed of {matched.names[side]}: {', '.join(texts)}."
