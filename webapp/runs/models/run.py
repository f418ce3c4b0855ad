"""A run."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.runs.reasons import sentence

# States of runs, trials and attempts, and other fixed choices.


class RunState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"  # no new trial is sent; the current trial continues to its end
    CLOSING = "closing", "Restoring settings"
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
    CLOSE_RUN = "close_run", "Restore settings"
    INVENTORY = "inventory", "Inventory"
    PURGE = "purge", "Purge"
    SETTING = "setting", "Setting"


class AttemptState(models.TextChoices):
    """A lost attempt is revived when its results arrive and no newer attempt exists."""

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
    number = models.PositiveIntegerField(unique=True)  # its number for people: run 17
    version = models.ForeignKey(PlanVersion, on_delete=models.PROTECT, related_name="runs")
    targets = models.ManyToManyField(Target, related_name="runs")
    target_order = models.JSONField(
        default=list
    )  # ids of its targets in the chosen order, which determines groups of targets at once
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.QUEUED)
    # Some trials use several hosts at once: all trials then run one after another, so that hosts do not disturb each
    # other (runs.dispatch.several_hosts).
    one_at_a_time = models.BooleanField(default=False)
    seed = models.BigIntegerField()  # seed of the order of trials
    trial_count = models.PositiveIntegerField()  # of a search: at most
    # Trials on each target, if its plan has a goal: its trials are added batch after batch (`runs.dispatch.ending`).
    budget = models.PositiveIntegerField(null=True)  # lowered while it runs if there is no time for as many
    budget_s = models.PositiveIntegerField(null=True)  # time of a search in seconds, without pauses; null: no limit
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_code = models.CharField(
        max_length=60, blank=True
    )  # the reason of an automatic cancellation: see runs.reasons
    cancel_fields = models.JSONField(default=dict)
    armed_serials = models.JSONField(default=list)  # typed by `armed_by`; kept after the arming has ended
    armed_until = models.DateTimeField(null=True)  # latest start of the run; null if disarmed
    armed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    reason_code = models.CharField(max_length=60, blank=True)  # why failed or cancelled: see runs.reasons
    reason_fields = models.JSONField(default=dict)
    note = models.TextField(blank=True)  # written with the start; later ones are rows of Note
    # Order in which hosts take up runs, smallest first; null once ended. Open runs without one come last.
    queue_position = models.BigIntegerField(null=True)
    # The longest time that its slowest host was expected to need when the run was queued; null: unknown. A later run
    # starts ahead of a waiting one only if it fits (runs.dispatch.backfill).
    expected_most_s = models.FloatField(null=True)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    paused_at = models.DateTimeField(null=True)  # set while paused
    paused_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    pause_code = models.CharField(max_length=60, blank=True)  # set during an automatic pause
    pause_fields = models.JSONField(default=dict)
    invalid_reason = models.CharField(max_length=500, blank=True)  # set if a person marked all its results as invalid
    label = models.CharField(max_length=63, blank=True)  # label of its host in a group: a dimension of comparisons
    tags = ArrayField(models.CharField(max_length=40), default=list)  # sorted, each once
    again_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="again")
    request_id = models.UUIDField(
        null=True, unique=True
    )  # id of the form that started it, so that a form sent twice starts one run
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    announced_at = models.DateTimeField(null=True)  # when notices about its end were queued

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="run_state_known"),
            # checked at the commit, so that one statement can swap positions
            models.UniqueConstraint(
                fields=["queue_position"], name="run_queue_position_once", deferrable=models.Deferrable.DEFERRED
            ),
        ]
        indexes = [
            # the dispatcher looks only at open runs, of which there are few
            models.Index(fields=["created_at"], name="run_open", condition=Q(state__in=OPEN_RUN_STATES)),
            # the list of runs: open ones first, then those that ended last
            models.Index(F("ended_at").desc(nulls_first=True), F("number").desc(), name="run_list"),
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
        """The reason of an automatic pause, as a sentence; "" otherwise."""
        return sentence(self.pause_code, self.pause_fields)
