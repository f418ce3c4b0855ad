"""The limits of the targets that products were measured at, for curves of bandwidth."""

from dataclasses import dataclass

from django.http import QueryDict

from webapp.analysis.trial_metrics import moments_of
from webapp.bench.side_by_side import SideBySide
from webapp.hosts.inventory.ceilings import Bound, bounds_of
from webapp.screens.bench.address import with_value
from webapp.screens.ceilings import in_words


@dataclass(frozen=True)
class Ceilings:
    offered: bool
    shown: bool
    other: str  # the query of the page with the other choice
    bounds: tuple[Bound, ...]

    @property
    def in_words(self) -> list[str]:
        return in_words(self.bounds)


def ceilings_of(data: QueryDict, found: SideBySide) -> Ceilings:
    offered = any(curve.panel.metric.key == "bytes_per_s" for curve in found.curves)
    shown = offered and data.get("ceilings") == "on"
    other = with_value(data, ceilings="" if shown else "on")
    return Ceilings(offered, shown, other, shown_bounds(found) if shown else ())


def shown_bounds(found: SideBySide) -> tuple[Bound, ...]:
    return bounds_of(moments_of([row for rows in found.read.rows.values() for row in rows]))
