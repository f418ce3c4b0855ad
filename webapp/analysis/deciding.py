"""Skips the repeats of a run that can no longer change an answer: `decide_percent` in its plan.

All repeats are planned when a run starts. After each complete repeat on a host, the run's own questions are answered
as its page answers them, but with the smaller p-value of several looks (`claims.Looks`). A comparison of two levels
at one point is decided when they differ, or are equal within the margin. A point whose comparisons are all decided is
not repeated on that host. What the run claims at its end is read from its results as always: a decision only ends the
repeats.

Nothing is decided while neighbouring repeats resemble each other: then they are not independent, and intervals are too
narrow.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

from django.db import transaction

from webapp.analysis.cells import CellKey, Measured
from webapp.analysis.claims import Looks
from webapp.analysis.comparing import Matching, Selected, baseline_of, cells_of, concluded_of, read_all, select_from
from webapp.analysis.conclusions import Conclusions, GroupedCells
from webapp.analysis.question import CompareRefused, read_query
from webapp.core.services import audit
from webapp.plans.document import PlanDocument
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow
from webapp.results.rounds import left_of
from webapp.runs.models import ENDED_TRIAL_STATES, Run, Trial
from webapp.runs.states import cancel_these

DECIDED = "decided"  # reason code of the trials that are not needed
ERRORS = 2.0  # standard errors above which neighbouring repeats resemble each other


@transaction.atomic
def decide_repeats(run_id: UUID, host_id: UUID, document: PlanDocument) -> int:
    """Cancel the host's planned trials of the run at points where all is decided; return their number. `document`: of
    its plan, with `decide_percent`."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    here = run.trials.all() if run.one_at_a_time else run.trials.filter(host=host_id)
    planned, repeats = left_of(here)
    if repeats < document.repeats_min or here.filter(repeat__gt=repeats, state__in=ENDED_TRIAL_STATES).exists():
        return 0  # the second condition: this repeat was looked at when its last trial ended
    places = _decided_places(run, document)
    decided = [trial for trial in planned if (trial.target_id, trial.part, trial.point_key) in places]
    fields = {"repeats": repeats, "percent": document.decide_percent}
    cancel_these(run, decided, code=DECIDED, fields=fields)
    if decided:
        detail = {"host": str(host_id), "trials": len(decided), **fields}
        audit(by=None, action="run.skip_repeats", on=run, detail=detail)
    return len(decided)


def _decided_places(run: Run, document: PlanDocument) -> set[tuple[UUID, str, str]]:
    """Target, part and point of each point that is compared and needs no further repeat."""
    try:
        matching = read_all(ResultQuery.of(ResultFilter(runs=(run.number,))))
        selections = list(_selections(run.number, document, matching))
    except CompareRefused:
        return set()
    is_open: dict[str, bool] = {}
    for row, open_here in compared_rows(selections, document, Looks(document.repeats_min, document.repeats)):
        is_open[row.trial_id] = is_open.get(row.trial_id, False) or open_here
    trials = Trial.objects.filter(pk__in=is_open).values_list("pk", "target_id", "part", "point_key")
    places = {(target, part, key) for _, target, part, key in trials}
    return places - {(target, part, key) for pk, target, part, key in trials if is_open[str(pk)]}


def _selections(number: int, document: PlanDocument, matching: Matching) -> Iterator[Selected]:
    """Of the run's own questions. Raises CompareRefused."""
    for chosen in matching.questions:
        if not chosen.fixed:
            query = read_query([("run", str(number)), *chosen.pairs])
            yield select_from(replace(query, margin=document.decide_percent / 100), matching)


def compared_rows(
    selections: Sequence[Selected], document: PlanDocument, looks: Looks
) -> Iterator[tuple[ResultRow, bool]]:
    """The results of each comparison, and whether it is open. The comparisons share the chance of a false decision;
    those of the factors in `document.decide`, or of all factors, must be decided."""
    wanted: list[tuple[Selected, GroupedCells, Conclusions]] = []
    for selected in selections:
        if not document.decide or not set(document.decide).isdisjoint(selected.query.series):
            compared = cells_of(selected, baseline_of(selected.query, selected.grouped))
            wanted.append((selected, compared, concluded_of(selected, compared, looks)))
    pairs = [pair for _, cells, _ in wanted for _, pair in _pairs(cells)]
    resembling = resembles_itself(list(_differences(*pair)) for pair in pairs)
    for selected, cells, answers in wanted:
        for keys, _ in _pairs(cells):
            is_open = resembling or not _is_decided(answers, keys[0])
            for key in keys:
                yield from ((row, is_open) for row in selected.grouped.cells[key])


def _pairs(compared: GroupedCells) -> Iterator[tuple[tuple[CellKey, CellKey], tuple[Measured, Measured]]]:
    """Each series at each point with the baseline of its chart."""
    for key, cell in compared.cells.items():
        other = (key[0], compared.baselines[key[0]].key, key[2])
        if key != other and other in compared.cells:
            yield (key, other), (cell, compared.cells[other])


def _is_decided(answers: Conclusions, key: CellKey) -> bool:
    point = answers.points.get(key)
    return point is not None and (point.claim.different or point.claim.equal)


def _differences(mine: Measured, theirs: Measured) -> Iterator[float]:
    """ln(series / baseline) in each repeat that both have, in order."""
    for block in sorted(mine.values.keys() & theirs.values.keys()):
        if mine.values[block] > 0 and theirs.values[block] > 0:
            yield math.log(mine.values[block] / theirs.values[block])


def resembles_itself(series: Iterable[Sequence[float]]) -> bool:
    """Whether neighbouring values correlate, over all series together: the lag-1 autocorrelation of each, corrected for
    its bias of -1 / n (M. G. Kendall: Note on bias in the estimation of autocorrelation, Biometrika 41, 1954), is
    positive by more than two standard errors of one series (1 / sqrt(n), M. S. Bartlett, 1946). The series of one run
    share what the host did, so many of them say little more than one."""
    above, below, most = 0.0, 0.0, 0
    for values in series:
        if len(values) > 2:
            mean = math.fsum(values) / len(values)
            apart = [value - mean for value in values]
            spread = math.fsum(value**2 for value in apart)
            neighbours = math.fsum(earlier * later for earlier, later in pairwise(apart))
            above += neighbours + spread / len(values)
            below += spread
            most = max(most, len(values))
    return below > 0 and above / below > ERRORS / math.sqrt(most)
