"""Arming: a person's permission to overwrite the drives of a run.

    (typed serials) ──► armed ──► the run starts in time: armed until the run ends
                          ├── the hour ends before the run starts: the run waits to be armed again
                          └── disarmed, or paused for longer than an arming lasts: the run waits too

Arming names the drives, the run and the person. It is recorded in the audit log and included in every signed order; the
worker checks the serial numbers and the time too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import actor_name, audit
from webapp.core.windows import viewers_time
from webapp.hosts.models import Target
from webapp.plans.preflight import drives_taken
from webapp.runs.models import Run, Trial, TrialState
from worker.contract.orders import Arming


@dataclass(frozen=True)
class ArmingState:
    """The arming of a run with destructive trials left."""

    drives: list[Target]  # overwritten by trials that are still planned
    by: str
    until: datetime | None  # None: disarmed
    holds: bool  # the next destructive trial may be sent
    started_in_time: bool  # the run started in time, so `until` no longer applies

    @property
    def why_not(self) -> str:
        """Why the run is not armed, in words; "" if it is."""
        if self.holds:
            return ""
        if self.until is None:
            return "The run was disarmed, or paused for longer than an arming lasts."
        return f"{self.by} armed the run until {viewers_time(self.until)}, but it did not start by then."


def arming_state(run: Run) -> ArmingState | None:
    """The state of the arming; None if no destructive trial is left."""
    drives = armed_targets(run)
    if not drives:
        return None
    by = actor_name(run.armed_by)
    return ArmingState(
        drives, by, run.armed_until, is_armed(run), started_in_time=is_armed(run) and run.started_at is not None
    )


def is_armed(run: Run) -> bool:
    """Whether destructive trials may be sent. An arming stays valid for a run that started in time."""
    began: datetime = run.started_at or timezone.now()
    return bool(run.armed_serials) and run.armed_until is not None and began <= run.armed_until


def arming_of(run: Run) -> Arming | None:
    """The arming for an order; None if the run may not overwrite anything now."""
    if not is_armed(run) or run.armed_until is None:
        return None
    return Arming(
        serials=tuple(run.armed_serials),
        by=actor_name(run.armed_by),
        until=run.armed_until.timestamp(),
        run_began=run.started_at.timestamp() if run.started_at else None,
    )


def armed_targets(run: Run) -> list[Target]:
    """Targets that the run's planned trials will overwrite."""
    return overwritten(run.trials.filter(state=TrialState.PLANNED, destructive=True))


def overwritten(trials: Iterable[Trial]) -> list[Target]:
    """Devices and files that these trials overwrite, drives under layouts among them."""
    taken = [trial for trial in trials if trial.destructive]
    written = {
        (str(target.pk), layout)
        for trial in taken
        for target, layout in zip(trial.stream_targets, trial.stream_layouts, strict=True)
    }
    targets = Target.objects.filter(pk__in={target for target, _ in written}).select_related("host")
    return drives_taken(written, list(targets)) if written else []


def refuse_untyped(targets: Sequence[Target], serials: Sequence[str], *, by: User | None) -> None:
    """Raises Refusal not_armed unless the serial of each was typed, token_may_not_arm for a token without the right.

    The preview returns the serials, so a script needs no person to type them: a person gives its token the right.
    """
    if targets and by is not None and not by.may_arm:
        raise Refusal(
            "token_may_not_arm",
            f"This destroys all data on {', '.join(map(str, targets))}, and this API token may not arm. Arm it on its "
            "page in a browser, or create a token with “May arm” on the page Account.",
        )
    unarmed = [target for target in targets if target.arming_serial not in serials]
    if unarmed:
        wanted = ", ".join(f"{target.arming_serial} for {target}" for target in unarmed)
        raise Refusal("not_armed", f"This destroys all data on the drives. To arm it, type: {wanted}.")


def arm(
    *, run: Run, serials: Sequence[str], targets: Sequence[Target], by: User | None, until: datetime | None = None
) -> None:
    """Record the arming; the caller has checked the serials and locked the run. It lasts ARMING_SECONDS, or until
    `until`."""
    until = until or timezone.now() + timedelta(seconds=settings.ARMING_SECONDS)
    run.armed_serials, run.armed_until, run.armed_by = list(serials), until, by
    run.save(update_fields=["armed_serials", "armed_until", "armed_by"])
    drives = [f"{target}: {target.model} {target.arming_serial}".replace("  ", " ") for target in targets]
    audit(by=by, action="run.arm", on=run, detail={"drives": drives, "until": until.isoformat()})
