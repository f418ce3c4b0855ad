"""The result of a finished run in one line: the conclusion from its numbers, or the reason why it has none."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.core.cache import cache
from django.urls import reverse

from webapp.compare.comparison import Cell, Comparison, Panel, Series
from webapp.compare.query import CompareRefused, read_query
from webapp.compare.scaling import scaling
from webapp.compare.selectors import compare
from webapp.results.reading.filter import FACTOR_PREFIX, ResultFilter, write_level
from webapp.results.reading.points import target_points
from webapp.results.reading.query import ResultQuery
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.reasons import sentence
from webapp.screens.compare.defaults import choose_for

KEPT_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Outcome:
    """`says` and `caution` are sentences or ""; `url` is the address of the comparison."""

    says: str
    caution: str
    url: str


def outcome(run: Run, *, marked: int) -> Outcome:
    """Cached: a finished run changes only when a person marks trials as invalid; `marked` is their number."""
    ended_at = run.ended_at.timestamp() if run.ended_at else 0
    key = f"outcome:{run.pk}:{ended_at}:{marked}:{bool(run.invalid_reason)}"
    found: Outcome | None = cache.get(key)
    if found is None:
        found = _outcome(run)
        cache.set(key, found, KEPT_SECONDS)
    return found


def _outcome(run: Run) -> Outcome:
    says, caution, url = _compared(run)
    return Outcome(says or run.reason, " ".join(filter(None, (caution, _failures(run)))), url)


def _failures(run: Run) -> str:
    failed = Trial.objects.filter(run=run, state=TrialState.FAILED).order_by("index")
    count = failed.count()
    if not count:
        return ""
    code, fields = failed.values_list("reason_code", "reason_fields")[0]
    reason = sentence(code, fields).split("\n")[0][:200]
    return f"{count} of {run.trial_count} trials failed. First reason: {reason}"


def _compared(run: Run) -> tuple[str, str, str]:
    """The conclusion of a comparison within the run, a caution, and the address of the comparison."""
    found = target_points(ResultQuery.of(ResultFilter(runs=(run.number,))))
    if not found:
        return "", "", ""
    chosen = choose_for(found)
    pairs = [("run", str(run.number)), ("target", chosen.target), ("x", chosen.x), ("series", chosen.series)]
    pairs += [("panel", chosen.panel)]
    pairs += [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in chosen.fixed.items()]
    given = [pair for pair in pairs if pair[1]]
    try:
        made = compare(read_query(given))
    except CompareRefused:
        return "", "", ""
    says = _scaling(made) or _strongest(made) or _range(made)
    return (
        says,
        "" if made.single_factor or not chosen.series else made.verdict,
        f"{reverse('compare')}?{urlencode(given)}",
    )


def _scaling(made: Comparison) -> str:
    """How the first series scales with the number of targets at once."""
    return next((": ".join(filter(None, sentence)) for sentence in scaling(made)), "")


def _against(made: Comparison) -> Iterator[tuple[Panel, Series]]:
    return ((panel, series) for panel in made.panels for series in panel.series if series.sentence)


def _strongest(made: Comparison) -> str:
    """The sentence about the series with the largest resolved difference from the baseline.

    Without a resolved difference, the series with the narrowest interval: the largest unresolved difference is noise.
    """

    def rank(item: tuple[Panel, Series]) -> tuple[int, float]:
        overall = item[1].against_baseline.ratio if item[1].against_baseline else None
        if overall is None or overall.value <= 0:
            return 0, 0.0
        if overall.resolved:
            return 2, max(overall.value, 1 / overall.value)
        if overall.low and overall.high:
            return 1, -overall.high / overall.low
        return 0, max(overall.value, 1 / overall.value)

    panel, series = max(_against(made), key=rank, default=(None, None))
    if panel is None or series is None:
        return ""
    return f"{panel.name}: {series.sentence}" if panel.name else series.sentence


def _range(made: Comparison) -> str:
    """The lowest and the highest value with their points, for a run with one series."""
    found = sorted(
        ((cell, panel, one) for panel in made.panels for one in panel.series for cell in one.cells),
        key=lambda item: item[0].summary.mean,
    )
    if not found:
        return ""
    if len(found) == 1:
        return f"{made.metric_label} {found[0][0].text}."

    def described(cell: Cell, panel: Panel, one: Series) -> str:
        several = one.name if len(panel.series) > 1 else ""
        names = (panel.name, several, f"{made.x_label} {made.levels[cell.level].text}")
        return f"{cell.text} ({', '.join(filter(None, names))})"

    return f"{made.metric_label} from {described(*found[0])} to {described(*found[-1])} over {len(found)} points."
