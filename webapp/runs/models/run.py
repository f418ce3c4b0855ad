"""Runs, their trials and the targets of these."""

import uuid
from typing import Self

import msgspec
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.hosts.selectors import group_name
from webapp.plans.factors import name_layout
from webapp.plans.layouts import made_kind
from webapp.plans.models import PlanVersion
from webapp.plans.points import (
    Point,
    hosts_at_once,
    index_of,
    layouts_of,
    number_of,
    on_kind,
    on_stream,
    stream_count,
    target_count,
)
from webapp.plans.streams import names_of
from webapp.runs.reasons import sentence
from worker.contract.layouts import Layout
from worker.contract.workload import AnyWorkload, TargetKind

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


# Trials.


class Trials(models.QuerySet["Trial"]):
    def numbered(self, *numbers: int) -> Self:
        """Trials with these numbers in their run."""
        return self.filter(index__in=[index_of(number) for number in numbers])


class Trial(models.Model):
    """One execution of one point in a run."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="trials")
    index = models.PositiveIntegerField()  # place in the order of execution, from 0; shown is `number`
    repeat = models.PositiveIntegerField()  # from 1
    batch = models.PositiveIntegerField(null=True)  # of a search, from 0; null: of a run without one
    is_final = models.BooleanField(default=False)  # of a search: a finalist in its final rounds
    part = models.CharField(max_length=100)  # name of the plan's part it belongs to
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="trials")  # the first one, of stream 0
    # Every level of this point, fixed ones too: factor name -> level, e.g. {"block_size": 4096, "scheduler": "none"}.
    # Keys and units are those of plans.factors; filters on any factor go through its GIN index.
    point = models.JSONField()
    # Identifies the point: trials with equal point_key differ only in target and repeat.
    point_key = models.CharField(max_length=64)
    workload = models.JSONField()  # contract.workload.AnyWorkload: of all its streams, or of the first named one
    further_workloads = models.JSONField(default=list)  # of the other named streams
    settings = models.JSONField(default=dict)  # setting name -> wanted value
    drop_caches = models.BooleanField(default=False)
    destructive = models.BooleanField(
        default=False
    )  # overwrites its target: needs arming, is never retried automatically
    state = models.CharField(max_length=10, choices=TrialState.choices, default=TrialState.PLANNED)
    reason_code = models.CharField(max_length=60, blank=True)  # why failed, cancelled or lost: see runs.reasons
    reason_fields = models.JSONField(default=dict)
    # Of a trial on several hosts: an attempt ended before it was done, so the others are stopped.
    stop_requested_at = models.DateTimeField(null=True)
    common_start_at = models.DateTimeField(null=True)  # of its attempts; set once all of them are ready
    attempts_left = models.PositiveSmallIntegerField(default=1)  # orders that may still be sent for it
    ended_at = models.DateTimeField(null=True)
    invalid_reason = models.CharField(max_length=500, blank=True)  # set if a person marked it as invalid
    skip_requested_at = models.DateTimeField(null=True)  # when a person skipped it
    skipped_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    skip_reason = models.CharField(max_length=500, blank=True)  # as typed

    objects = Trials.as_manager()

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
            # the failure limit looks at the newest failures of a run on a host
            models.Index(fields=["run", "host", "-ended_at"], name="trial_failed", condition=Q(state="failed")),
        ]

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
    def source(self) -> str:
        """What it is in a search: `finalist` or `batch`; "" of a run without one."""
        if self.batch is None:
            return ""
        return "finalist" if self.is_final else "batch"

    @property
    def number(self) -> int:
        """What people call it in its run; from 1."""
        return number_of(self.index)

    @property
    def why_invalid(self) -> str:
        """Why its results are invalid: its own reason, or its run's; "" if they are valid."""
        return self.invalid_reason or self.run.invalid_reason

    @property
    def has_layout(self) -> bool:
        """Whether it uses a layout."""
        return name_layout(self.point)

    @property
    def stream_count(self) -> int:
        return stream_count(self.point)

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names of its streams; () if all have the same workload."""
        return names_of(self.point)

    @property
    def workloads(self) -> tuple[AnyWorkload, ...]:
        """The workload of each named stream, or one that all streams have."""
        return msgspec.convert([self.workload, *self.further_workloads], tuple[AnyWorkload, ...])

    @property
    def stream_workloads(self) -> tuple[AnyWorkload, ...]:
        """The workload of each stream."""
        if self.stream_names:
            return self.workloads
        return tuple(on_stream(self.workloads[0], self.point, number) for number in range(self.stream_count))

    @property
    def stream_layouts(self) -> tuple[Layout | None, ...]:
        """The layout under each stream."""
        layouts = layouts_of(self.point)
        return layouts if self.stream_names else layouts * self.stream_count

    @property
    def on_several_hosts(self) -> bool:
        return hosts_at_once(self.point) > 1

    @property
    def all_hosts(self) -> list[Host]:
        """Its hosts in the order of its streams."""
        return list({target.host_id: target.host for target in self.all_targets}.values())

    def streams_on(self, host_id: uuid.UUID) -> list[int]:
        """The numbers of its streams on a host."""
        return [number for number, target in enumerate(self.stream_targets) if target.host_id == host_id]

    @property
    def all_targets(self) -> list[Target]:
        """Its targets in the order of its streams, each once; no query for a trial with one target."""
        further = self.further.all() if target_count(self.point) > 1 else ()
        return [self.target, *(each.target for each in further)]

    @property
    def stream_targets(self) -> list[Target]:
        """The target of each stream: named streams share the only target, or have one each."""
        targets = self.all_targets
        return targets if len(targets) > 1 else targets * self.stream_count

    @property
    def target_names(self) -> str:
        """Names on its first host: nvme0n1, nvme0n1 + nvme1n1, or nvme0n1 + storage2/nvme0n1."""
        first, *further = self.all_targets
        return group_name(first.slug, [each.slug if each.host_id == first.host_id else str(each) for each in further])

    @property
    def shown_point(self) -> Point:
        """The point without factors that have no effect on its kind of target."""
        return on_kind(self.point, made_kind(TargetKind(self.target.kind), layouts_of(self.point)[0]))

    @property
    def place(self) -> str:
        """Name with the host: host/nvme0n1 + nvme1n1."""
        return f"{self.target.host.slug}/{self.target_names}"


class _WithTarget(models.Manager["FurtherTarget"]):
    def get_queryset(self) -> models.QuerySet["FurtherTarget"]:
        return super().get_queryset().select_related("target__host")


class FurtherTarget(models.Model):
    """A target that a trial uses at the same time as its first one, which is `Trial.target`."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="further", db_index=False)
    stream = models.PositiveSmallIntegerField()  # its number in the order, from 1
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+")

    objects = _WithTarget()

    class Meta:
        ordering = ["stream"]
        constraints = [
            models.UniqueConstraint(fields=["trial", "stream"], name="further_target_once_per_stream"),
            models.UniqueConstraint(fields=["trial", "target"], name="further_target_once_per_trial"),
            models.CheckConstraint(condition=Q(stream__gte=1), name="further_target_after_the_first"),
        ]
