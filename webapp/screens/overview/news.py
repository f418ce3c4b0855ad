"""What the runs and imports of the last day show: a sentence each, with a small picture of what shows it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse
from django.utils import timezone

from webapp.analysis import import_findings
from webapp.analysis.evidence import Line, Picture, RunFinding
from webapp.analysis.run_findings import are_due, newest
from webapp.results.models import Import
from webapp.runs.models import Run
from webapp.screens.findings import address, as_heading
from webapp.screens.overview.attention import SINCE

SHOWN = 3
AGO = timedelta(days=7)  # if the last day found nothing
WIDTH, HEIGHT, MARGIN = 236, 56, 5  # px
MOST_LINES = 4


@dataclass(frozen=True)
class Curve:
    """`pieces` are points of polylines: a level without a value breaks the line. `is_evidence`: the sentence is about
    it."""

    pieces: tuple[str, ...]
    is_evidence: bool


@dataclass(frozen=True)
class Drawing:
    """`one`: height of the ratio 1, None for a picture of values."""

    curves: tuple[Curve, ...]
    one: float | None
    label: str


@dataclass(frozen=True)
class Item:
    """`claim` has no interval; `certainty` is that, and what else may explain the claim."""

    claim: str
    certainty: str
    address: str
    title: str
    drawing: Drawing | None


@dataclass(frozen=True)
class News:
    """`ended`: runs of the last day. `is_old`: the findings are of the days before. `are_due`: others are being
    made, because their runs have just ended or the rules have changed."""

    items: tuple[Item, ...]
    ended: int
    is_old: bool
    are_due: bool


def news() -> News:
    """At most eight queries."""
    now = timezone.now()
    ended = Run.objects.filter(ended_at__gte=now - SINCE, invalid_reason="").count()
    items = _items(now - SINCE)
    is_old = not items
    return News(items or _items(now - AGO), ended, is_old, are_due(now - (AGO if is_old else SINCE)))


def _items(since: datetime) -> tuple[Item, ...]:
    """Findings of runs, then one of each import."""
    of_imports = (_item_of_import(*each) for each in import_findings.newest(since, SHOWN))
    return (*map(_item, newest(since, SHOWN)), *of_imports)[:SHOWN]


def _item_of_import(imported: Import, sentence: str) -> Item:
    return Item(
        sentence, "", reverse("import", args=[imported.number]), title=f"Import {imported.number}", drawing=None
    )


def _item(finding: RunFinding) -> Item:
    return Item(
        claim=as_heading(finding.claim).partition(";")[0],
        certainty=" · ".join(filter(None, (finding.certainty, finding.doubt.partition(":")[0]))),
        address=address(finding),
        title=f"Run {finding.run}",
        drawing=drawing(finding.picture) if finding.picture else None,
    )


def drawing(picture: Picture) -> Drawing | None:
    """On a logarithmic axis; None if a value is not positive, or if nothing can be connected by a line: without labels,
    single dots say nothing."""
    lines = picture.lines[:MOST_LINES]
    values = [value for line in lines for value in line.values if value is not None]
    if not values or min(values) <= 0 or not picture.ordered:
        return None
    low, high = (pick([*values, 1.0] if picture.ratios else values) for pick in (min, max))
    span = math.log(high / low) or 1.0

    def up(value: float) -> float:
        return round(HEIGHT - MARGIN - math.log(value / low) / span * (HEIGHT - 2 * MARGIN), 1)

    reach = (WIDTH - 2 * MARGIN) / max(1, len(picture.levels) - 1)
    curves = tuple(Curve(_pieces(line, reach, up), line.first is not None) for line in lines)
    if not any(curve.pieces for curve in curves):
        return None
    names = ", ".join(line.name for line in lines if line.name)
    return Drawing(
        curves, up(1.0) if picture.ratios else None, f"{picture.metric_label} over {picture.x_label}: {names}"
    )


def _pieces(line: Line, reach: float, up: Callable[[float], float]) -> tuple[str, ...]:
    pieces: list[list[str]] = [[]]
    for place, value in enumerate(line.values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{MARGIN + place * reach:.1f},{up(value):g}")
    return tuple(" ".join(piece) for piece in pieces if len(piece) > 1)
