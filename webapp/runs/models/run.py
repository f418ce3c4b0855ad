"""A run."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.runs.models.choices import (
    OPEN_RUN_STATES,
    Priority,
    RunState,
)
from webapp.runs.reasons import sentence


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
    queue_position = models.BigIntegerField(null=True)
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
                fields=["queue_position"], name="run_queue_position_once", deferrable=models.Deferrable.DEFERRED
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
