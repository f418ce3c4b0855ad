"""Runs that ended before all of their trials were done: their values stand beside those of complete runs."""

from collections.abc import Iterable, Iterator

from django.db.models import Count, Q

from webapp.results.reading.rows import ResultRow
from webapp.runs.models import Run, RunState, TrialState

LISTED = 5


def unfinished_sentences(rows: Iterable[ResultRow]) -> Iterator[str]:
    """`Run 3 was cancelled after 12 of 40 trials.` for each run of these rows that was cancelled or failed; then the
    number of further ones. One query, or none without such a run."""
    states = {row.run: row.run_state for row in rows if row.run_state in (RunState.CANCELLED, RunState.FAILED)}
    listed = sorted(states)[:LISTED]
    done = Count("trials", filter=Q(trials__state=TrialState.DONE))
    runs = Run.objects.filter(number__in=listed).order_by("number").annotate(done=done) if listed else ()
    for run in runs:
        verb = "was cancelled" if run.state == RunState.CANCELLED else "failed"
        yield f"Run {run.number} {verb} after {run.done} of {run.trial_count} trials. Its results are included."
    if len(states) > LISTED:
        yield f"{len(states) - LISTED} more runs were cancelled or failed. Their results are included."
