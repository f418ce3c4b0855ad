"""The result of a finished run in one line: the conclusion from its numbers, or the reason why it has none."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.core.cache import cache
from django.urls import reverse

from webapp.compare.comparison import Comparison
from webapp.compare.headline import headline
from webapp.compare.query import CompareRefused, read_query
from webapp.compare.selectors import compare
from webapp.results.reading.filter import FACTOR_PREFIX, ResultFilter, write_level
from webapp.results.reading.points import target_points
from webapp.results.reading.query import ResultQuery
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.reasons import sentence
from webapp.screens.explore.defaults import Chosen, choose_for, questions_of

KEPT_SECONDS = 24 * 3600
MAX_QUESTIONS = 3  # whose conclusions are in one line


@dataclass(frozen=True)
class Outcome:
    """`says` and `caution` are sentences or ""; `url` is the address of the comparison."""

    says: str
    caution: str
    url: str


def outcome(run: Run, *, marks: int) -> Outcome:
    """Cached: a finished run changes only when a person marks it or a trial as invalid, or takes that back. `marks`
    counts this (`results.validity.marks_changed`): the number of marked trials is the same if another one is marked."""
    ended_at = run.ended_at.timestamp() if run.ended_at else 0
    key = f"outcome:{run.pk}:{ended_at}:{marks}"
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
    """The conclusions of comparisons within the run, a caution, and the address of the first comparison.

    Each factor with names that the plan varies is compared by itself, over all targets and other levels. A plan that
    varies numbers only has the default comparison of Explore.
    """
    measured = target_points(ResultQuery.of(ResultFilter(runs=(run.number,))))
    if not measured:
        return "", "", ""
    answers = [made for chosen in questions_of(measured) if (made := _answer(run, chosen)) and _has_ratio(made[0])]
    answers = answers[:MAX_QUESTIONS] or [made for made in [_answer(run, choose_for(measured))] if made]
    if not answers:
        return "", "", ""
    first, given = answers[0]
    return (
        " ".join(headline(made) for made, _ in answers),
        "" if first.single_factor or not first.series_by else first.verdict,
        f"{reverse('explore')}?{urlencode(given)}",
    )


def _answer(run: Run, chosen: Chosen) -> tuple[Comparison, list[tuple[str, str]]] | None:
    """The comparison and its address; None if it cannot be made, as with too many series."""
    pairs = [("run", str(run.number)), ("target", chosen.target), ("x", chosen.x), ("series", chosen.series)]
    pairs += [("panel", chosen.panel), ("metric", chosen.metric)]
    pairs += [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in chosen.fixed.items()]
    given = [pair for pair in pairs if pair[1]]
    try:
        return compare(read_query(given)), given
    except CompareRefused:
        return None


def _has_ratio(made: Comparison) -> bool:
    return any(series.against_baseline for panel in made.panels for series in panel.series)
