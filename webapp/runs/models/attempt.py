"""Attempts, which are orders to hosts, with everything that belongs to them; the history of a run, and notes."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.hosts.models import Host, Target
from webapp.runs.models.run import (
    ACTIVE_ATTEMPT_STATES,
    AttemptKind,
    AttemptState,
    Run,
    Trial,
)
from webapp.runs.reasons import sentence


class NextInSequence(models.Func):
    """The next value of the database's sequence of attempts. It only grows, also if a transaction is rolled back."""

    template = "nextval('runs_attempt_sequence')"
    output_field = models.BigIntegerField()


class Attempt(models.Model):
    """One order to one host, and its outcome."""

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
    started_at = models.DateTimeField(null=True)  # the engine started
    ended_at = models.DateTimeField(null=True)
    # Of a trial on several hosts: when it was ready, the common start by the worker's clock, and the largest error (s)
    # of the server's clock on the host.
    ready_at = models.DateTimeField(null=True)
    common_start_at = models.DateTimeField(null=True)
    start_uncertainty_s = models.FloatField(null=True)
    phase = models.JSONField(default=dict)  # contract.items.Phase last reported; {} before. See runs.phases
    configuration_digest = models.CharField(
        max_length=64, blank=True
    )  # digest of the results.Configuration last observed
    # Minimum of (server's clock at receipt - worker's clock at sending): the worker's clock error plus a delay.
    clock_offset_ms = models.BigIntegerField(null=True)
    purged = models.JSONField(default=list)  # contract.items.Purged of each drive
    outcome_code = models.CharField(max_length=60, blank=True)
    outcome_fields = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    # The order in which attempts were created. Their times do not tell it: the server's clock may be set back.
    sequence = models.BigIntegerField(unique=True, editable=False, db_default=NextInSequence())

    class Meta:
        ordering = ["sequence"]
        constraints = [
            # A host has one active attempt at a time, so that runs do not disturb each other.
            models.UniqueConstraint(
                fields=["host"], name="attempt_one_active_per_host", condition=Q(state__in=ACTIVE_ATTEMPT_STATES)
            ),
            # A trial on several hosts has an attempt with the same number on each of them.
            models.UniqueConstraint(fields=["trial", "host", "number"], name="attempt_number_once_per_host"),
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
        """Why it was not completed, as a sentence; "" if it is done."""
        return sentence(self.outcome_code, self.outcome_fields)


class HostAction(models.Model):
    """A host action on one target, outside any run. Its attempt has the outcome."""

    attempt = models.OneToOneField(Attempt, on_delete=models.CASCADE, related_name="action")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="actions")
    purge = models.CharField(max_length=30, blank=True)  # contract.purge.PurgeMethod
    armed_until = models.DateTimeField(
        null=True
    )  # of a purge: the latest start of the purge, after its serial was typed
    stop_requested_at = models.DateTimeField(null=True)  # of a purge: the host receives it with its next report
    setting = models.CharField(max_length=100, blank=True)
    operation = models.CharField(max_length=10, blank=True)  # contract.orders.SettingOperation
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


class SettingChange(models.Model):
    """A setting: requested and observed value, and whether it was restored."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="setting_changes")
    at = models.DateTimeField()
    name = models.CharField(max_length=100)
    device = models.CharField(max_length=200, blank=True)
    before = models.TextField(blank=True)
    asked = models.TextField()
    observed = models.TextField()
    took_s = models.FloatField(null=True)  # build time of the trial's layout, by the worker's clock
    meanwhile = models.BooleanField(default=False)  # something else changed it during the measurement
    restoring = models.BooleanField(default=False)  # this row is the restore
    restored = models.BooleanField(default=False)
    note = models.TextField(blank=True)


# The history of a run.


class Transition(models.Model):
    """A change of state of a run or trial: the history."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="transitions")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="transitions", null=True)
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="transitions", null=True)
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


class _NotDeleted(models.Manager["Note"]):
    def get_queryset(self) -> models.QuerySet["Note"]:
        return super().get_queryset().filter(deleted_at=None)


class Note(models.Model):
    """A person's note about a run or one of its trials. Plain text."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="notes")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="notes", null=True)
    text = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)  # can be restored

    objects = _NotDeleted()
    with_deleted = models.Manager["Note"]()

    class Meta:
        ordering = ["at", "id"]
        # deletions that follow foreign keys must find deleted notes too
        base_manager_name = "with_deleted"
