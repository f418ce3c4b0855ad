"""Occurrences for pages, with the outcome of their run."""

from collections.abc import Iterable
from dataclasses import dataclass

from webapp.runs.models import Run
from webapp.schedules.models import Occurrence
from webapp.screens.outcome import Outcome, outcome


@dataclass(frozen=True)
class Happened:
    """`outcome` is None until the run has ended."""

    occurrence: Occurrence
    run: Run | None
    outcome: Outcome | None


def happened(occurrences: Iterable[Occurrence]) -> list[Happened]:
    """`occurrences` come from `selectors.occurrences_list`, which counts the marks."""
    return [_happened(one, getattr(one, "marks", 0)) for one in occurrences]


def _happened(occurrence: Occurrence, marks: int) -> Happened:
    run = occurrence.run
    return Happened(occurrence, run, outcome(run, marks=marks) if run and run.ended_at else None)
