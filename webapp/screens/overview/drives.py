"""The drives of the overview: a tile each, or, of many, a line a host with the changed drives first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from django.urls import reverse

from webapp.results.metrics import METRICS
from webapp.screens.hosts.views import HostRow
from webapp.screens.trend.charts import Scale, Sparkline, sparkline
from webapp.screens.trend.claims import LABELS, SIGNS, change_of, trend_address
from webapp.trends.summaries import Row, State

MOST_TILES = 28  # of an installation that shows all its drives
MOST_CHANGED = 14  # tiles of one that does not
MOST_HOSTS = 60
SPARK = (152, 36)  # px
CALM = (State.UNCERTAIN, State.STEADY, State.SHORT)


@dataclass(frozen=True)
class Tile:
    name: str
    model: str
    address: str
    value: str
    tone: str
    state: str
    spark: Sparkline


@dataclass(frozen=True)
class HostLine:
    """`words`: 12 steady, 1 slower."""

    name: str
    address: str
    tone: str
    words: str


@dataclass(frozen=True)
class Drives:
    """`metric` is the label of the metric of all trends, "" if they differ. `more_hosts` are not shown."""

    metric: str
    tiles: tuple[Tile, ...]
    hosts: tuple[HostLine, ...]
    more_hosts: int


def drives(rows: Sequence[Row], hosts: Sequence[HostRow], scale: Scale) -> Drives:
    """`rows`: the trend of each target, by host."""
    presence = {row.host.pk: row.presence.state for row in hosts}
    away = {host for host, state in presence.items() if state == "lost"}
    metrics = {METRICS[row.summary.metric].label for row in rows}
    metric = metrics.pop() if len(metrics) == 1 else ""
    if len(rows) <= MOST_TILES:
        return Drives(metric, tuple(_tile(row, scale, away=row.target.host_id in away) for row in rows), (), 0)
    order = list(State)
    changed = sorted(
        (row for row in rows if row.summary.state not in CALM), key=lambda row: order.index(row.summary.state)
    )
    by_host = [list(group) for _, group in groupby(rows, key=lambda row: row.target.host_id)]
    lines = sorted((_line(group, presence) for group in by_host), key=lambda line: line.tone == "steady")
    tiles = tuple(_tile(row, scale, away=row.target.host_id in away) for row in changed[:MOST_CHANGED])
    return Drives(metric, tiles, tuple(lines[:MOST_HOSTS]), max(0, len(lines) - MOST_HOSTS))


def _tile(row: Row, scale: Scale, *, away: bool) -> Tile:
    summary, target = row.summary, row.target
    tone = "away" if away else ""
    return Tile(
        name=str(target),
        model=target.model or target.path,
        address=trend_address(row.plan, row.target),
        value=summary.text,
        tone=tone or summary.state.tone,
        state="○ away" if away else _state(row),
        spark=sparkline(summary, scale, width=SPARK[0], height=SPARK[1], tone=tone),
    )


def _state(row: Row) -> str:
    state, step = row.summary.state, row.summary.step
    if state in (State.SLOWER, State.WORSE, State.FASTER) and step:
        return f"{SIGNS[state]} {change_of(step).size}"
    return f"{SIGNS[state]} {LABELS[state].lower()}".strip()


def _line(rows: Sequence[Row], presence: Mapping[UUID, str]) -> HostLine:
    host = rows[0].target.host
    states = [row.summary.state for row in rows]
    words = [f"{states.count(state)} {LABELS[state].lower()}" for state in State if state in states]
    worst = min(states, key=list(State).index)
    away = presence.get(host.pk) == "lost"
    tone = "away" if away else worst.tone
    return HostLine(
        host.slug, reverse("host", args=[host.slug]), tone, ", ".join([*(["away"] if away else []), *words])
    )
