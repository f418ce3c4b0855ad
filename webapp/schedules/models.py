"""Schedules, and the outcome of each of their due times.

Occurrence:  waiting -> started -> ended
             waiting -> missed
`ended` does not mean success: see the state of the occurrence's run.
"""

import uuid

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from webapp.hosts.models import Host, HostGroup, Target
from webapp.plans.document import read
from webapp.plans.factors import HOSTS_AT_ONCE
from webapp.plans.models import PlanVersion
from webapp.runs.models import Priority, Run
from webapp.schedules.reasons import sentence


class Trigger(models.TextChoices):
    """The trigger of a schedule."""

    ONCE = "once", "Once"
    CRON = "cron", "Recurring"
    AFTER_SCHEDULE = "after_schedule", "After another schedule"
    AFTER_RUN = "after_run", "After a run"


class Condition(models.TextChoices):
    """Which outcome of the previous run makes the next one due."""

    DONE = "done", "Only if it is done"
    ANY = "any", "With any result"


class GroupOrder(models.TextChoices):
    SIDE_BY_SIDE = "side_by_side", "Side by side"
    ONE_BY_ONE = "one_by_one", "One after another"


class Overlap(models.TextChoices):
    """What happens at a due time while an earlier run of the schedule is not over."""

    SKIP = "skip", "Skip the new run"
    WAIT = "wait", "Start after it ends"


class AtDeadline(models.TextChoices):
    NOTIFY = "notify", "Notify only"
    CANCEL = "cancel", "Cancel the run"


class OccurrenceState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    STARTED = "started", "Started"
    ENDED = "ended", "Ended"
    MISSED = "missed", "Missed"


OPEN_OCCURRENCE_STATES = (OccurrenceState.WAITING, OccurrenceState.STARTED)


class ScheduleState(models.TextChoices):
    """Derived, not stored: see selectors.state_of."""

    ON = "on", "On"
    FINISHED = "finished", "Finished"
    OFF = "off", "Off"
    DELETED = "deleted", "Deleted"


class Schedule(models.Model):
    """The automatic start of a plan version on targets or a group of hosts."""

    name = models.CharField(max_length=80)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="schedules")
    version = models.ForeignKey(PlanVersion, on_delete=models.PROTECT, related_name="schedules")
    targets = models.ManyToManyField(Target, through="ScheduleTarget", related_name="schedules")  # empty with a group
    target_order = models.JSONField(default=list)  # their ids as chosen
    group = models.ForeignKey(HostGroup, on_delete=models.PROTECT, null=True, related_name="schedules")
    group_order = models.CharField(max_length=12, choices=GroupOrder.choices, default=GroupOrder.SIDE_BY_SIDE)
    note = models.CharField(max_length=500, blank=True)

    trigger = models.CharField(max_length=14, choices=Trigger.choices)
    once_at = models.DateTimeField(null=True)
    cron = models.CharField(max_length=100, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC")  # IANA name: of the cron line, its days and the window
    # Of a cron line: the days on which it is due, and a pause that a person ordered. See timing.due_after.
    first_day = models.DateField(null=True)
    last_day = models.DateField(null=True)
    except_days = models.JSONField(default=list)  # as 2026-12-24, ascending
    paused_until = models.DateTimeField(null=True)
    after_schedule = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="followers")
    after_run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="followed_by")
    condition = models.CharField(max_length=4, choices=Condition.choices, default=Condition.DONE)

    # The run is paused outside its weekly window. Without days there is no window. See core.windows.
    window_days = models.JSONField(default=list)
    window_opens = models.TimeField(null=True)
    window_closes = models.TimeField(null=True)

    start_within_s = models.PositiveIntegerField(default=3600)  # latest start, from the due time
    deadline_s = models.PositiveIntegerField(null=True, validators=[MinValueValidator(1)])  # from the due time
    at_deadline = models.CharField(max_length=6, choices=AtDeadline.choices, default=AtDeadline.NOTIFY)
    overlap = models.CharField(max_length=4, choices=Overlap.choices, default=Overlap.SKIP)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)

    enabled = models.BooleanField(default=True)
    off_code = models.CharField(max_length=60, blank=True)  # why it is off, if not by a person: schedules.reasons
    off_fields = models.JSONField(default=dict)
    off_person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    next_due_at = models.DateTimeField(null=True)  # null: not known in advance, or never again
    deleted_at = models.DateTimeField(null=True)

    # A person's permission to overwrite drives. Ends when schedule, plan version or targets change.
    armed_serials = models.JSONField(default=list)  # as typed
    armed_targets = models.JSONField(
        default=list
    )  # ids of the targets with these serials: a serial alone may be shared
    armed_until = models.DateTimeField(null=True)
    armed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")

    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="schedule_name_once", condition=Q(deleted_at=None)),
            models.CheckConstraint(
                condition=Q(trigger="once", once_at__isnull=False)
                | (Q(trigger="cron") & ~Q(cron=""))
                | Q(trigger="after_schedule", after_schedule__isnull=False)
                | Q(trigger="after_run", after_run__isnull=False),
                name="schedule_trigger_has_its_value",
            ),
            models.CheckConstraint(
                condition=Q(window_days=[]) | Q(window_opens__isnull=False, window_closes__isnull=False),
                name="schedule_window_has_times",
            ),
            models.CheckConstraint(condition=Q(deleted_at=None) | Q(enabled=False), name="schedule_deleted_is_off"),
        ]
        indexes = [
            # the scheduler queries due schedules every few seconds
            models.Index(fields=["next_due_at"], name="schedule_due", condition=Q(enabled=True)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def run_for_each_host(self) -> bool:
        """Whether each host of its group gets a run of its own. Hosts that a trial uses at once are in one run."""
        document = self.version.document if self.group else None
        return self.group is not None and not (document and read(document).names(HOSTS_AT_ONCE))

    @property
    def off_reason(self) -> str:
        """Why it is off, as a sentence; "" if it is on or a person switched it off."""
        return sentence(self.off_code, self.off_fields, self.off_person.username if self.off_person else "")


class ScheduleTarget(models.Model):
    """A target of a schedule. Protects it, and so its host, from being deleted."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE)
    target = models.ForeignKey(Target, on_delete=models.PROTECT)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["schedule", "target"], name="schedule_has_target_once")]


class Occurrence(models.Model):
    """One due time of a schedule; for a group of hosts there is one for each host."""

    # Also the request id of its run, so that starting twice starts one run.
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="occurrences")
    due_at = models.DateTimeField()
    position = models.PositiveSmallIntegerField(default=0)  # of its host in the group, from 0
    host = models.ForeignKey(Host, on_delete=models.PROTECT, null=True, related_name="+")  # of a group
    # The person who made it due by hand; this person also starts the run.
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    # When it could first start; null while it waits for the previous host of the group.
    ready_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=7, choices=OccurrenceState.choices, default=OccurrenceState.WAITING)
    tried_at = models.DateTimeField(
        null=True
    )  # set by a tick that ran out of time: the next one tries the others first
    reason_code = models.CharField(max_length=60, blank=True)  # why it was missed or waits: schedules.reasons
    reason_fields = models.JSONField(default=dict)
    missed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    run = models.OneToOneField(Run, on_delete=models.SET_NULL, null=True, related_name="occurrence")
    paused_by_window_at = models.DateTimeField(null=True)  # when the scheduler paused its run because the window closed
    late_at = models.DateTimeField(null=True)  # passed its deadline
    finished_at = models.DateTimeField(null=True)  # ended or missed

    class Meta:
        ordering = ["-due_at", "position"]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "due_at", "position"], name="occurrence_once"),
            models.CheckConstraint(condition=Q(state__in=OccurrenceState.values), name="occurrence_state_known"),
            models.CheckConstraint(
                condition=~Q(state="missed") | ~Q(reason_code=""), name="occurrence_missed_has_reason"
            ),
        ]
        indexes = [
            # the scheduler queries open occurrences every few seconds
            models.Index(fields=["due_at"], name="occurrence_open", condition=Q(state__in=OPEN_OCCURRENCE_STATES)),
            models.Index(fields=["-due_at"], name="occurrence_latest_first"),  # the calendar
        ]

    def __str__(self) -> str:
        on = f" on {self.host}" if self.host else ""
        return f"{self.schedule.name}, due {self.due_at:%Y-%m-%d %H:%M} UTC{on}"

    @property
    def reason(self) -> str:
        """Why it was missed or waits, as a sentence."""
        return sentence(self.reason_code, self.reason_fields, self.missed_by.username if self.missed_by else "")

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_OCCURRENCE_STATES


class SchedulerTick(models.Model):
    """One row: the time of the scheduler's last tick. A gap means an outage."""

    at = models.DateTimeField()
