"""The estimated cost of one run of a schedule, and a warning if it is due too often."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice, pairwise

from webapp.core import formatting
from webapp.hosts.models import Target
from webapp.plans.document import read
from webapp.plans.estimate import Expected, written_in_total
from webapp.plans.grids import grids_of
from webapp.plans.models import PlanVersion
from webapp.plans.preview import Preview
from webapp.results.speeds import expected_writes, learned_preview
from webapp.runs.durations import experience_of
from webapp.schedules.models import GroupOrder, Overlap, Schedule
from webapp.schedules.timing import due_after
from webapp.screens.schedules.words import limit_in_words

DUES_LOOKED_AT = 100


@dataclass(frozen=True)
class RunCost:
    """`preview` and `expected` are of one run; of a host group, of the run that takes longest."""

    preview: Preview
    expected: list[tuple[Target, Expected]]
    host: str  # of the group; "" without one
    hosts: int
    seconds: float  # from the start at a due time to the end of its last run
    drives: tuple[Target, ...]  # that all of its runs overwrite

    @property
    def written(self) -> int | None:
        """Expected bytes written; None if nothing is known about one of the targets."""
        return written_in_total(self.preview.estimate, {str(target.pk): told for target, told in self.expected})


def run_cost(version: PlanVersion, targets: Sequence[Target], group_order: GroupOrder | None) -> RunCost | None:
    """None without targets. With `group_order`, each host of `targets` gets its own run."""
    runs = _by_host(targets) if group_order else [list(targets)]
    if not targets:
        return None
    document, experience = read(version.document), experience_of(targets)
    grids = grids_of(document)
    chosen, longest = None, runs[0]
    seconds, drives = [], list[Target]()
    for each in runs:
        made = learned_preview(document, each, experience=experience, grids=grids)
        seconds.append(made.estimate.seconds)
        drives += made.destructive
        if chosen is None or made.estimate.seconds > chosen.estimate.seconds:
            chosen, longest = made, each  # the others are released: each can have 10,000 trials
    assert chosen is not None
    return RunCost(
        preview=chosen,
        expected=expected_writes(chosen.expansion, chosen.estimate, longest),
        host=str(longest[0].host) if group_order else "",
        hosts=len(runs),
        seconds=sum(seconds) if group_order == GroupOrder.ONE_BY_ONE else max(seconds),
        drives=tuple(drives),
    )


def _by_host(targets: Sequence[Target]) -> list[list[Target]]:
    ordered = sorted(targets, key=lambda target: str(target.host_id))
    return [list(each) for _, each in groupby(ordered, key=lambda target: target.host_id)]


def too_often(schedule: Schedule, cost: RunCost, now: datetime) -> str:
    """A warning if a run is due before the previous one has ended; "" otherwise."""
    dues = list(islice(due_after(schedule, now), DUES_LOOKED_AT))
    gaps = {later - earlier for earlier, later in pairwise(dues)}
    if not gaps or min(gaps) >= timedelta(seconds=cost.seconds):
        return ""
    apart = limit_in_words(int(min(gaps).total_seconds()))
    runs = "The runs of one due time take" if cost.hosts > 1 else "A run takes"
    how = "at least" if cost.preview.estimate.unknown_trials else "about"
    takes = f"{runs} {how} {formatting.duration(cost.seconds)}"
    due = f"runs are due every {apart}" if len(gaps) == 1 else f"some runs are due only {apart} apart"
    return f"{takes}, but {due}. {_MEANWHILE[Overlap(schedule.overlap)]}"


_MEANWHILE = {
    Overlap.SKIP: "A run that is due while an earlier one is going is missed.",
    Overlap.WAIT: "A run that is due while an earlier one is going waits for it, and is missed at its latest start.",
}
