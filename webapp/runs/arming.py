"""A person's word that what is on a run's drives may be destroyed.

    (typed serials) ──► armed ──► the run begins in time: it holds to the run's end
                          ├── the hour passes before the run began: it waits to be armed again
                          └── disarmed, or a pause longer than an arming lasts: the same

Arming names the drives, the run and the person, is written to the audit log, and goes with every order, signed:
the worker looks at serials and time itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import actor_name, audit
from webapp.core.viewer_zone import viewers_time
from webapp.hosts.models import Target
from webapp.plans.destruction import drives_taken
from webapp.plans.points import layout_of
from webapp.runs.models import Run, Trial, TrialState
from worker.contract.orders import Arming


@dataclass(frozen=True)
class ArmingState:
    """How a run that has something left to destroy is armed."""

    drives: list[Target]  # that trials which are still planned overwrite
    by: str
    until: datetime | None  # None: disarmed
    holds: bool  # the next destructive trial may be sent
    begun: bool  # in time, so that `until` does not matter any more

    @property
    def why_not(self) -> str:
        """In words, "" where it holds."""
        if self.holds:
            return ""
        if self.until is None:
            return "It was disarmed, or paused for longer than an arming lasts."
        return f"{self.by} armed it until {viewers_time(self.until)}, and it had not begun by then."


def arming_state(run: Run) -> ArmingState | None:
    """None where nothing is left to destroy."""
    drives = armed_targets(run)
    if not drives:
        return None
    by = actor_name(run.armed_by)
    return ArmingState(drives, by, run.armed_until, is_armed(run), begun=is_armed(run) and run.started_at is not None)


def is_armed(run: Run) -> bool:
    """Also of a run that began while its arming was fresh."""
    began: datetime = run.started_at or timezone.now()
    return bool(run.armed_serials) and run.armed_until is not None and began <= run.armed_until


def arming_of(run: Run) -> Arming | None:
    """As it goes with an order; None where the run may destroy nothing now."""
    if not is_armed(run) or run.armed_until is None:
        return None
    return Arming(
        serials=tuple(run.armed_serials),
        by=actor_name(run.armed_by),
        until=run.armed_until.timestamp(),
        run_began=run.started_at.timestamp() if run.started_at else None,
    )


def armed_targets(run: Run) -> list[Target]:
    """What trials of the run which are still planned would overwrite."""
    return overwritten(run.trials.filter(state=TrialState.PLANNED, destructive=True))


def overwritten(trials: Iterable[Trial]) -> list[Target]:
    """Devices and files that these trials overwrite, drives under layouts among them."""
    taken = [trial for trial in trials if trial.destructive]
    written = {(str(target.pk), layout_of(trial.point)) for trial in taken for target in trial.all_targets}
    targets = Target.objects.filter(pk__in={target for target, _ in written}).select_related("host")
    return drives_taken(written, list(targets)) if written else []


def refuse_untyped(targets: Sequence[Target], serials: Sequence[str]) -> None:
    """Raises Refusal not_armed unless the serial of each was typed."""
    unarmed = [target for target in targets if target.arming_serial not in serials]
    if unarmed:
        wanted = ", ".join(f"{target.arming_serial} for {target}" for target in unarmed)
        raise Refusal("not_armed", f"This destroys what is on the drives. To arm it, type: {wanted}.")


def arm(
    *, run: Run, serials: Sequence[str], targets: Sequence[Target], by: User | None, until: datetime | None = None
) -> None:
    """Record the arming; the caller has checked the serials and holds the run. It ends after ARMING_SECONDS unless
    `until` says when."""
    until = until or timezone.now() + timedelta(seconds=settings.ARMING_SECONDS)
    run.armed_serials, run.armed_until, run.armed_by = list(serials), until, by
    run.save(update_fields=["armed_serials", "armed_until", "armed_by"])
    drives = [f"{target}: {target.model} {target.arming_serial}".replace("  ", " ") for target in targets]
    audit(by=by, action="run.arm", on=run, detail={"drives": drives, "until": until.isoformat()})
