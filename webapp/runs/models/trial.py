"""A trial, and the targets it uses."""

import uuid
from typing import Self

import msgspec
from django.db import models
from django.db.models import Q

from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.hosts.selectors import group_name
from webapp.plans.layouts import made_kind
from webapp.plans.points import (
    Point,
    hosts_at_once,
    index_of,
    layout_of,
    number_of,
    on_kind,
    on_stream,
    stream_count,
    target_count,
)
from webapp.plans.streams import names_of
from webapp.runs.models.run import (
    Run,
    TrialState,
)
from webapp.runs.reasons import sentence
from worker.contract.workload import AnyWorkload, TargetKind


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
        return "layout" in self.point

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
        return on_kind(self.point, made_kind(TargetKind(self.target.kind), layout_of(self.point)))

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
