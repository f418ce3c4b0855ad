"""The list of trends: a sparkline, the last change and a verdict each; as rows or as a grid of small charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils.http import urlencode

from webapp.screens.trend.charts import Scale, Sparkline, sparkline
from webapp.screens.trend.claims import (
    LABELS,
    SIGNS,
    change_of,
    changes,
    counts,
    sentence,
    trend_address,
    unchanged,
)
from webapp.trends.steps import MIN_RUNS
from webapp.trends.summaries import Row, State, worst_by_target

CHANGED = (State.FROZE, State.SLOWER, State.WORSE, State.FASTER)
VIEWS = {"list": "List", "grid": "Grid"}
SPARK = {"list": (400, 36), "grid": (280, 64)}  # px
MOST_STEADY = 200


@dataclass(frozen=True)
class TrendRow:
    """`change` and `cause` are those of the last step; `at` is when it came."""

    target: str
    model: str
    plan: str
    address: str
    run: int
    value: str
    spark: Sparkline
    change: str
    at: datetime | None
    cause: str
    too_few: str  # “too few runs (3 of 13)” where no change can be found
    spread: str
    tone: str
    sign: str
    verdict: str


@dataclass(frozen=True)
class Chip:
    label: str
    count: int
    address: str
    is_current: bool


def trend_list(query: QueryDict, rows: Sequence[Row]) -> dict[str, Any]:
    """The context of the page. `state` and `view` are in the address."""
    states = counts(rows)
    state = next((option for option in State if option.value == query.get("state")), None)
    view = query.get("view", "list") if query.get("view") in VIEWS else "list"
    scale = Scale.of(row.summary for row in rows)
    chosen_rows = [row for row in rows if state in (None, row.summary.state)]
    width, height = SPARK[view]
    shown = [
        trend_row(row, scale, width, height) for row in chosen_rows[:MOST_STEADY] if row.summary.state not in CHANGED
    ]
    changed = [
        trend_row(row, scale, width, height) for option in CHANGED for row in chosen_rows if row.summary.state is option
    ]
    return {
        "heading": heading(rows),
        "has_trends": bool(rows),
        "chips": [
            Chip("All", len(rows), _address(query, "state", ""), state is None),
            *(Chip(LABELS[option], states[option], _address(query, "state", option.value), option is state)
              for option in State if states[option]),
        ],
        "views": [(label, _address(query, "view", "" if key == "list" else key), key == view)
                  for key, label in VIEWS.items()],
        "view": view,
        "scale": scale,
        "changed": changed,
        "steady": shown,
        "steady_words": _steady_words(shown),
        "more": max(0, sum(row.summary.state not in CHANGED for row in chosen_rows) - len(shown)),
        "unfold": state is not None or not changed,
    }  # fmt: skip


def heading(rows: Sequence[Row]) -> str:
    """Of the drives, each by its worst trend: it agrees with the overview."""
    worst = worst_by_target(rows)
    judged = [row for row in worst if row.summary.state is not State.SHORT]
    if not judged:
        return "No trend yet: too few runs" if rows else "No trend yet"
    phrases = changes(worst, CHANGED)
    if phrases:
        return sentence(phrases)
    return unchanged(judged, "steady")


def _steady_words(rows: Sequence[TrendRow]) -> str:
    """“2 steady, 1 without a certain change, 1 too new to judge”"""
    new = sum(bool(row.too_few) for row in rows)
    steady = sum(row.verdict == LABELS[State.STEADY] for row in rows)
    counted = (steady, "steady"), (len(rows) - new - steady, "without a certain change"), (new, "too new to judge")
    return ", ".join(f"{count} {words}" for count, words in counted if count)


def _address(query: QueryDict, name: str, value: str) -> str:
    pairs = {key: query.get(key, "") for key in ("plan", "target", "state", "view")} | {name: value}
    text = urlencode({key: str(text) for key, text in pairs.items() if text})
    return f"?{text}" if text else "?"


def trend_row(row: Row, scale: Scale, width: int, height: int) -> TrendRow:
    summary = row.summary
    change = change_of(summary.step) if summary.step else None
    state = summary.state
    runs = len(summary.values)  # all of them, if they are too few
    sign = "" if summary.step is None else "▲" if summary.step.better else "▼"
    return TrendRow(
        target=str(row.target),
        model=row.target.model,
        plan=row.plan.title,
        address=trend_address(row.plan, row.target),
        run=row.newest_run,
        value=summary.text,
        spark=sparkline(summary, scale, width=width, height=height),
        change=f"{sign} {change.size}" if change else "",
        at=summary.step.at if summary.step and not summary.step.over else None,
        cause=change.cause if change else "",
        too_few=f"too few runs ({runs} of {MIN_RUNS})" if runs < MIN_RUNS else "",
        spread=f"± {100 * summary.spread:.1f} %" if summary.spread is not None else "–",
        tone=state.tone,
        sign=SIGNS[state],
        verdict=LABELS[state],
    )
