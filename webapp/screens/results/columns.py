"""The columns of the table of results: all columns, the default ones, and those that sort."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from webapp.core.errors import Refusal
from webapp.plans.factors import FACTORS, Value
from webapp.plans.points import varying
from webapp.results.metrics import METRICS, default_metric
from webapp.results.reading.doubts import steadiness_words
from webapp.results.reading.query import SORTS
from webapp.results.reading.rows import ResultRow
from webapp.screens import point_words

WHEN, POINT = "when", "point"
MAX_FACTORS = 3  # columns of factors by default; more would push the measured values off a screen


@dataclass(frozen=True)
class Column:
    key: str
    label: str
    text: Callable[[ResultRow], str]
    numeric: bool = False
    measured: bool = False  # a number that is shown as doubtful if the result is invalid
    sorts: bool = False


def _factor(name: str) -> Column:
    factor = FACTORS[name]
    return Column(
        name,
        factor.label,
        lambda result: _level(name, result.point[name]) if name in result.point else "–",
        numeric=factor.numeric,
    )


@lru_cache(maxsize=10_000, typed=True)
def _level(name: str, value: Value) -> str:
    """Thousands of rows share a few levels, so each is formatted once."""
    return FACTORS[name].format(value)


def _metric(key: str) -> Column:
    metric = METRICS[key]
    return Column(
        key, metric.label, lambda r: metric.format(metric.of(r)), numeric=True, measured=True,
        sorts=key in SORTS,
    )  # fmt: skip


_ATTRIBUTES = (
    Column("plan", "Plan", lambda result: result.plan_title),
    Column("part", "Part", lambda result: result.part or "–"),
    Column("host", "Host", lambda result: result.host),
    Column("target", "Target", lambda result: result.target_name),
    Column("controller", "Controller", lambda result: result.controller or "–"),
    Column("model", "Drive model", lambda result: result.model or "–"),
    Column("serial", "Drive", lambda result: result.serial or "–"),
    Column(POINT, "Test point", lambda result: point_words.in_full(result.point)),
    Column("label", "Label", lambda result: result.label or "–"),
    Column("direction", "Direction", lambda result: result.direction),
    Column("drive_state", "Drive state", lambda result: result.drive_state or "–"),
    Column("steadiness", "Steadiness", steadiness_words),
    Column("tool", "Tool", lambda result: result.tool_and_version),
    Column("import", "Import", lambda result: result.import_title or "–"),
)
_TIMES = (
    Column("repeat", "Repeat", lambda result: str(result.repeat), numeric=True),
    Column("ios", "I/Os", lambda result: "–" if result.ios is None else f"{result.ios:,}", numeric=True),
)

COLUMNS: Mapping[str, Column] = {
    column.key: column
    for column in (
        *_ATTRIBUTES,
        *map(_factor, FACTORS),
        *_TIMES,
        *map(_metric, METRICS),
        Column(WHEN, "When", lambda result: result.measured_at.isoformat(), sorts=True),
    )
}
_BEFORE = ("target", "direction")
_USUAL = ("iops", "bytes_per_s", "latency_mean", "latency_p99", "latency_p999")


def default_columns(rows: Iterable[ResultRow], factors_of_filter: Iterable[str]) -> tuple[str, ...]:
    """The usual columns, plus factors that vary in the shown rows or are in the filter; many share one column.

    The first metric is the one of the rows' engine.
    """
    shown = [row.point for row in rows]
    named = {*varying(shown), *factors_of_filter}
    factors = [name for name in FACTORS if name in named]
    metrics = dict.fromkeys((default_metric(shown).key, *_USUAL))
    return (*_BEFORE, *(factors if len(factors) <= MAX_FACTORS else (POINT,)), "repeat", *metrics, WHEN)


def read_columns(texts: Sequence[str]) -> tuple[str, ...]:
    """From `columns=target,iops`, also repeated; in the order of COLUMNS. Raises Refusal."""
    named = {name.strip() for text in texts for name in text.split(",") if name.strip()}
    unknown = sorted(named - COLUMNS.keys())
    if unknown:
        raise Refusal("column_unknown", f"There is no column `{unknown[0]}`. Use {', '.join(COLUMNS)}.")
    return tuple(key for key in COLUMNS if key in named)
