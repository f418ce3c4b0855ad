"""Runs, their trials and the attempts at them.

Trial:  planned -> dispatched -> accepted -> running -> done | failed | cancelled
        dispatched | accepted | running -> lost -> planned (again) | failed
Run:    queued -> running -> closing -> done | failed | cancelled
        queued | running -> paused -> queued | running | closing
The transition tables and the one function that moves each are in `states.py`.
"""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.plans.models import PlanVersion
from webapp.runs.at_once import UsesTargets
from webapp.runs.numbered import Numbered, Trials
from webapp.runs.reasons import sentence


class RunState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"  # by a person: no new order is sent, what is under way goes on to its end
    CLOSING = "closing", "Putting settings back"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class Priority(models.IntegerChoices):
    """Where a new run enters the queue: before all waiting runs of a lower priority."""

    LOW = -1, "Low"
    NORMAL = 0, "Normal"
    HIGH = 1, "High"


OPEN_RUN_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED, RunState.CLOSING)


class TrialState(models.TextChoices):
    PLANNED = "planned", "Planned"
    DISPATCHED = "dispatched", "Dispatched"
    ACCEPTED = "accepted", "Accepted"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    LOST = "lost", "Lost"


ACTIVE_TRIAL_STATES = (TrialState.DISPATCHED, TrialState.ACCEPTED, TrialState.RUNNING)
ENDED_TRIAL_STATES = (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED)


class AttemptKind(models.TextChoices):
    TRIAL = "trial", "Trial"
    CLOSE_RUN = "close_run", "Put settings back"
    INVENTORY = "inventory", "Inventory"
    PURGE = "purge", "Purge"
    SETTING = "setting", "Setting"


class AttemptState(models.TextChoices):
    """A lost attempt comes back to life when its own results arrive and no newer attempt exists."""

    DISPATCHED = "dispatched", "Dispatched"
    ACCEPTED = "accepted", "Accepted"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    LOST = "lost", "Lost"


ACTIVE_ATTEMPT_STATES = (AttemptState.DISPATCHED, AttemptState.ACCEPTED, AttemptState.RUNNING)


class Run(models.Model):
    """One execution of a plan version on chosen targets."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    number = models.PositiveIntegerField(unique=True)  # what people call it: run 17
    version = models.ForeignKey(PlanVersion, on_delete=models.PROTECT, related_name="runs")
    targets = models.ManyToManyField(Target, related_name="runs")
    target_order = models.JSONField(default=list)  # their ids as they were chosen: groups at once are made in it
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.QUEUED)
    seed = models.BigIntegerField()  # of the order of trials
    trial_count = models.PositiveIntegerField()
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_code = models.CharField(max_length=60, blank=True)  # why, where no person cancelled it: see runs.reasons
    cancel_fields = models.JSONField(default=dict)
    armed_serials = models.JSONField(default=list)  # typed by `armed_by`; kept after the arming has ended
    armed_until = models.DateTimeField(null=True)  # the run must begin before; null where it was disarmed
    armed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    reason_code = models.CharField(max_length=60, blank=True)  # why failed or cancelled: see runs.reasons
    reason_fields = models.JSONField(default=dict)
    note = models.TextField(blank=True)  # written with the start; later ones are rows of Note
    # Order in which hosts take up runs, smallest first; null once ended. Open runs without one come last.
    queue_place = models.BigIntegerField(null=True)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    paused_at = models.DateTimeField(null=True)  # set while paused
    paused_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    pause_code = models.CharField(max_length=60, blank=True)  # set while paused, where no person paused it
    pause_fields = models.JSONField(default=dict)
    invalid_reason = models.CharField(max_length=500, blank=True)  # a person marked all its results
    label = models.CharField(max_length=63, blank=True)  # of its host in a group: a dimension of comparisons
    again_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="again")
    request_id = models.UUIDField(null=True, unique=True)  # of the form that started it: sent twice, it starts once
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    announced_at = models.DateTimeField(null=True)  # subscribers were told that it ended

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="run_state_known"),
            # checked at the commit, so that runs can change places in one statement
            models.UniqueConstraint(
                fields=["queue_place"], name="run_queue_place_once", deferrable=models.Deferrable.DEFERRED
            ),
        ]
        indexes = [
            # the dispatcher looks only at open runs, of which there are few
            models.Index(fields=["created_at"], name="run_open", condition=Q(state__in=OPEN_RUN_STATES)),
            # runs that ended and were not announced yet, of which there are few
            models.Index(
                fields=["ended_at"], name="run_unannounced", condition=Q(ended_at__isnull=False, announced_at=None)
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.number}"

    @property
    def reason(self) -> str:
        """Why it failed or was cancelled, as a sentence; "" otherwise."""
        return sentence(self.reason_code, self.reason_fields)

    @property
    def pause_reason(self) -> str:
        """Why it is paused, as a sentence; "" where a person paused it, or it is not paused."""
        return sentence(self.pause_code, self.pause_fields)


class Trial(Numbered, UsesTargets, models.Model):
    """One execution of one point in a run."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="trials")
    index = models.PositiveIntegerField()  # place in the order of execution, from 0; shown is `number`
    repeat = models.PositiveIntegerField()  # from 1
    part = models.CharField(max_length=100)  # name of the plan's part it belongs to
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="trials")  # the first one, of stream 0
    # Every level of this point, fixed ones too: factor name -> level, e.g. {"block_size": 4096, "scheduler": "none"}.
    # Keys and units are those of plans.factors; filters on any factor go through its GIN index.
    point = models.JSONField()
    # The same but for target and repeat: trials with equal point_key are repeats of one another.
    point_key = models.CharField(max_length=64)
    workload = models.JSONField()  # contract.workload.AnyWorkload
    settings = models.JSONField(default=dict)  # setting name -> wanted value
    drop_caches = models.BooleanField(default=False)
    purge = models.CharField(max_length=30, blank=True)  # contract.purge.PurgeMethod, before anything else; "" none
    destructive = models.BooleanField(
        default=False
    )  # overwrites its target: needs arming, is never tried again unasked
    state = models.CharField(max_length=10, choices=TrialState.choices, default=TrialState.PLANNED)
    reason_code = models.CharField(max_length=60, blank=True)  # why failed, cancelled or lost: see runs.reasons
    reason_fields = models.JSONField(default=dict)
    attempts_left = models.PositiveSmallIntegerField(default=1)  # orders that may still be sent for it
    ended_at = models.DateTimeField(null=True)
    invalid_reason = models.CharField(max_length=500, blank=True)  # a person marked it as not to be trusted
    skip_requested_at = models.DateTimeField(null=True)  # a person wants it stopped, or not started
    skipped_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    skip_reason = models.CharField(max_length=500, blank=True)  # as typed

    objects = Trials.as_manager()

    def __str__(self) -> str:
        return f"{self.run} trial {self.number}"

    @property
    def reason(self) -> str:
        """Why it failed, was cancelled or was lost, as a sentence; "" otherwise."""
        by = self.skipped_by.username if self.reason_code == "skipped" and self.skipped_by else ""
        return sentence(self.reason_code, self.reason_fields, by)

    @property
    def skip_sentence(self) -> str:
        """Who skipped it and why."""
        return sentence("skipped", {"why": self.skip_reason}, self.skipped_by.username if self.skipped_by else "")

    @property
    def why_invalid(self) -> str:
        """Why its results are not to be trusted: its own reason, or its run's; "" where they are."""
        return self.invalid_reason or self.run.invalid_reason

    @property
    def has_layout(self) -> bool:
        """It works on drives put together for it."""
        return "layout" in self.point

    class Meta:
        ordering = ["run", "index"]
        constraints = [
            models.UniqueConstraint(fields=["run", "index"], name="trial_index_once_per_run"),
            models.CheckConstraint(condition=Q(state__in=TrialState.values), name="trial_state_known"),
            models.CheckConstraint(
                condition=~Q(state__in=[TrialState.FAILED, TrialState.LOST]) | ~Q(reason_code=""),
                name="trial_failure_has_reason",
            ),
        ]
        indexes = [
            # next trial of a host
            models.Index(fields=["host", "run", "index"], name="trial_planned", condition=Q(state="planned")),
            # how far a run is, in lists of runs
            models.Index(fields=["run", "state"], name="trial_states_of_run"),
            # the stop rule looks at the newest failures of a run on a host
            models.Index(fields=["run", "host", "-ended_at"], name="trial_failed", condition=Q(state="failed")),
        ]


class Attempt(models.Model):
    """One order to one host and everything that came of it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=10, choices=AttemptKind.choices)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts", null=True)
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="attempts", null=True)
    number = models.PositiveSmallIntegerField(default=1)  # 1 is the first try
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="attempts")
    state = models.CharField(max_length=10, choices=AttemptState.choices, default=AttemptState.DISPATCHED)
    confirmed_seq = models.PositiveIntegerField(default=0)  # all batches up to here are committed
    lease_until = models.DateTimeField()
    published_at = models.DateTimeField(null=True)  # last time the order went to the broker
    accepted_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)  # fio began
    ended_at = models.DateTimeField(null=True)
    phase = models.JSONField(default=dict)  # contract.items.Phase last reported; {} before. See runs.phases
    configuration_digest = models.CharField(max_length=64, blank=True)  # of the results.Configuration last observed
    # The least (server's clock at receipt minus worker's clock at sending) seen: the worker's clock error plus a delay.
    clock_offset_ms = models.BigIntegerField(null=True)
    purged = models.JSONField(default=list)  # contract.items.Purged of each drive
    outcome_code = models.CharField(max_length=60, blank=True)
    outcome_fields = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            # A host does one thing at a time. This is what keeps two runs from measuring each other.
            models.UniqueConstraint(
                fields=["host"], name="attempt_one_active_per_host", condition=Q(state__in=ACTIVE_ATTEMPT_STATES)
            ),
            models.UniqueConstraint(fields=["trial", "number"], name="attempt_number_once_per_trial"),
            models.CheckConstraint(condition=Q(state__in=AttemptState.values), name="attempt_state_known"),
            models.CheckConstraint(
                condition=Q(kind="trial", trial__isnull=False, run__isnull=False)
                | Q(kind="close_run", trial__isnull=True, run__isnull=False)
                | Q(kind__in=["inventory", "purge", "setting"], trial__isnull=True, run__isnull=True),
                name="attempt_kind_has_its_subject",
            ),
        ]
        indexes = [
            models.Index(fields=["lease_until"], name="attempt_lease", condition=Q(state__in=ACTIVE_ATTEMPT_STATES)),
        ]

    @property
    def outcome(self) -> str:
        """Why it ended as it did, as a sentence; "" where it is done."""
        return sentence(self.outcome_code, self.outcome_fields)


class HostAction(models.Model):
    """What a person asked of one target of a host, outside any run. Its attempt says what became of it."""

    attempt = models.OneToOneField(Attempt, on_delete=models.CASCADE, related_name="action")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="actions")
    purge = models.CharField(max_length=30, blank=True)  # contract.purge.PurgeMethod
    armed_until = models.DateTimeField(null=True)  # of a purge: the serial was typed; begun by then or not at all
    stop_requested_at = models.DateTimeField(null=True)  # of a purge: the host learns it with its next report
    setting = models.CharField(max_length=100, blank=True)
    deed = models.CharField(max_length=10, blank=True)  # contract.orders.SettingDeed
    value = models.CharField(max_length=200, blank=True)  # to be set
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    why = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at"]


class TargetLock(models.Model):
    """A drive in use by an attempt. Deleted when the attempt ends; under a layout, when its run is closed there."""

    lock_key = models.CharField(max_length=300, primary_key=True)  # of Target.lock_keys
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="locks")


class Move(models.Model):
    """A change of state of a run or trial: the history."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="moves")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="moves", null=True)
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="moves", null=True)
    at = models.DateTimeField(auto_now_add=True)
    before = models.CharField(max_length=10)
    after = models.CharField(max_length=10)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    code = models.CharField(max_length=60, blank=True)  # see runs.reasons
    fields = models.JSONField(default=dict)

    class Meta:
        ordering = ["at", "id"]

    @property
    def reason(self) -> str:
        """Why, as a sentence."""
        return sentence(self.code, self.fields, self.by.username if self.by else "")


class Note(models.Model):
    """What a person wrote down about a run, or about one trial of it. Plain text."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="notes")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="notes", null=True)
    text = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["at", "id"]


class SettingChange(models.Model):
    """A setting as asked for and as observed, and whether it was put back."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="setting_changes")
    at = models.DateTimeField()
    name = models.CharField(max_length=100)
    device = models.CharField(max_length=200, blank=True)
    before = models.TextField(blank=True)
    asked = models.TextField()
    observed = models.TextField()
    took_s = models.FloatField(null=True)  # of a layout that was built for the trial, by the worker's clock
    restoring = models.BooleanField(default=False)  # this row is the putting back
    restored = models.BooleanField(default=False)
    note = models.TextField(blank=True)
