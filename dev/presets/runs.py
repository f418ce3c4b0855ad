"""Starts a plan at small scale, waits for its end, and reports it. Import after django.setup()."""

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from dev.bench.runs import await_end
from dev.presets.drives import DIRECTORIES, DIRECTORY, DRIVES, FILE, PAIRS, POOL, SECOND
from dev.presets.scaling import Scale, scaled
from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument, read
from webapp.plans.factors import AT_ONCE, HOSTS_AT_ONCE, STREAMS_ON
from webapp.plans.grids import part_grid
from webapp.plans.models import Plan
from webapp.plans.services import create_plan
from webapp.plans.streams import EACH
from webapp.runs.models import Run, RunState, SettingChange, TargetLock, TrialState
from webapp.runs.services import StartRefused, cancel_run, start_run
from worker.contract.workload import TargetKind

LIMIT_S = 900.0
# Reasons that say what this host or its drives lack. Such a point was not tried, so it has not passed.
LACKS = frozenset({"capability_missing", "uring_feature_missing", "setting_no_controller"})
STOPPED = "stopped"  # after too many failures in a row
OF_KIND = {"directory": (DIRECTORY,), "file": (FILE,), "block": DRIVES[:1], "pool": (POOL,)}


@dataclass(frozen=True)
class Report:
    """`lacking`: what the host lacks, with a count of trials; `problems`: what must not be."""

    plan: str
    targets: tuple[str, ...]
    trials: int = 0
    done: int = 0
    seconds: float = 0.0
    lacking: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        if self.problems:
            return "✗"
        return "✓" if self.done == self.trials > 0 else "in part" if self.done else "not tried"


def builtin_plans(words: Collection[str]) -> list[Plan]:
    """All built-in plans, or those whose name contains one of the words."""
    plans = Plan.objects.exclude(builtin="").filter(deleted_at=None).order_by("slug")
    return [plan for plan in plans if not words or any(word in plan.slug for word in words)]


def report(plan: Plan, scale: Scale) -> Report:
    document = scaled(read(plan.versions.latest("number").document), scale)
    slugs = _targets_of(document)
    targets = [Target.objects.select_related("host").get(slug=slug, in_policy=True) for slug in slugs]
    version = create_plan(
        document=msgspec.structs.replace(document, title=f"{document.title} at small scale"), by=None
    ).versions.get()
    armed = list(Target.objects.filter(destroy=True).order_by("slug"))
    started_at = time.monotonic()
    try:
        run = start_run(version=version, targets=targets, by=None, armed=[one.arming_serial for one in armed])
    except StartRefused as refused:
        reasons = (f"{refused.message} ({refused.code})",)
        lacks = refused.code in LACKS
        return Report(plan.slug, slugs, lacking=reasons if lacks else (), problems=() if lacks else reasons)
    if not await_end(run, limit_s=LIMIT_S):
        cancel_run(run=run, by=None)
    return _of_run(plan.slug, slugs, run, time.monotonic() - started_at)


def _targets_of(document: PlanDocument) -> tuple[str, ...]:
    """One target of each kind that the plan runs on; for several at once, all drives or directories."""
    grids = [part_grid(document, part) for part in document.parts]
    if document.names(HOSTS_AT_ONCE):
        return DIRECTORY, SECOND
    if any(AT_ONCE in grid.levels for grid in grids):
        return PAIRS if TargetKind.POOL in grids[0].kinds else DRIVES
    if any(EACH in grid.levels.get(STREAMS_ON, ()) for grid in grids):
        return DIRECTORIES
    kinds = dict.fromkeys(kind for grid in grids for kind in grid.kinds)
    return tuple(slug for kind in kinds for slug in OF_KIND[kind])


def _of_run(plan: str, slugs: Sequence[str], run: Run, seconds: float) -> Report:
    other = Counter((trial.reason_code, trial.reason) for trial in run.trials.exclude(state=TrialState.DONE))
    lacking = [one for one in other if one[0] in LACKS]
    explained = {*lacking, *(one for one in other if lacking and one[0] == STOPPED)}
    problems = [_words(one, count) for one, count in other.items() if one not in explained]
    if run.state != RunState.DONE and not lacking:
        problems.append(f"The run is {run.get_state_display().lower()}. {run.reason}")
    return Report(
        plan, tuple(slugs), run.trial_count, run.trial_count - other.total(), seconds,
        tuple(_words(one, other[one]) for one in explained), (*problems, *_not_restored(run)),
    )  # fmt: skip


def _words(reason: tuple[str, str], count: int) -> str:
    return f"{count} × {reason[1]} ({reason[0]})"


def _not_restored(run: Run) -> list[str]:
    changes = SettingChange.objects.filter(attempt__run=run, restoring=True, restored=False)
    found = [f"{change.name} of {change.device} was not restored: {change.note}" for change in changes]
    return found + [f"The drive {lock.lock_key} is locked." for lock in TargetLock.objects.all()]
