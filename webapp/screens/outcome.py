"""The result of a finished run in one line: the conclusion from its numbers, or the reason why it has none."""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.core.cache import cache
from django.urls import reverse

from webapp.analysis.answer import Comparison
from webapp.analysis.comparing import compare
from webapp.analysis.dimensions import label_of
from webapp.analysis.headline import headline
from webapp.analysis.question import CompareRefused, read_query
from webapp.plans.factors import FACTORS
from webapp.results.reading.filter import FACTOR_PREFIX, Absence, Level, ResultFilter, write_level
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
    answers = [one for chosen in questions_of(measured) if (one := _answer(run, chosen)) and _has_ratio(one.made)]
    answers = answers[:MAX_QUESTIONS] or [one for one in [_answer(run, choose_for(measured))] if one]
    if not answers:
        return "", "", ""
    first = answers[0].made
    return (
        " ".join(one.says for one in answers if one.says),
        "" if first.single_factor or not first.series_by else first.verdict,
        f"{reverse('explore')}?{urlencode(answers[0].pairs)}",
    )


class _Answer(NamedTuple):
    says: str
    made: Comparison
    pairs: list[tuple[str, str]]  # of its address


def _answer(run: Run, chosen: Chosen) -> _Answer | None:
    """None if the comparison cannot be made, as with too many series."""
    pairs = [("run", str(run.number)), ("target", chosen.target), ("x", chosen.x), ("series", chosen.series)]
    pairs += [("panel", chosen.panel), ("metric", chosen.metric)]
    pairs += [(f"{FACTOR_PREFIX}{name}", write_level(name, level)) for name, level in chosen.fixed.items()]
    given = [pair for pair in pairs if pair[1]]
    try:
        made = compare(read_query(given))
    except CompareRefused:
        return None
    return _Answer(_qualified(headline(made), chosen), made, given)


def _has_ratio(made: Comparison) -> bool:
    return any(series.against_baseline for panel in made.panels for series in panel.series)


def _qualified(says: str, chosen: Chosen) -> str:
    """The headline with the target and the levels for which alone it holds: `Queue depth 1: kyber is …`."""
    levels = [f"{label_of(name)} {_level_text(name, level)}" for name, level in chosen.fixed.items()]
    where = ", ".join([*([chosen.target] if chosen.target else []), *levels])
    return f"{where}: {says}" if says and where else says


def _level_text(name: str, level: Level) -> str:
    return level.value if isinstance(level, Absence) else FACTORS[name].format(level)
