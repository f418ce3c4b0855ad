"""Trials that use several targets of a host at the same time, a stream of the order each."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from webapp.hosts.models import Target
from webapp.hosts.names import group_name
from webapp.plans.points import at_once


class _WithTarget(models.Manager["FurtherTarget"]):
    def get_queryset(self) -> models.QuerySet["FurtherTarget"]:
        return super().get_queryset().select_related("target__host")


class FurtherTarget(models.Model):
    """A target that a trial uses at the same time as its first one, which is `Trial.target`."""

    trial = models.ForeignKey("runs.Trial", on_delete=models.CASCADE, related_name="further", db_index=False)
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


class UsesTargets:
    """What a trial says of all its targets. Those of many trials are read at once by `selectors.read_further`."""

    if TYPE_CHECKING:
        point: Any
        target: Any
        further: Any

    @property
    def stream_count(self) -> int:
        """A stream for each target that it uses at once."""
        return at_once(self.point)

    @property
    def all_targets(self) -> list[Target]:
        """In the order of its streams; without a query for a trial of one."""
        further = self.further.all() if self.stream_count > 1 else ()
        return [self.target, *(each.target for each in further)]

    @property
    def target_names(self) -> str:
        """On its host: nvme0n1, or nvme0n1 + nvme1n1 at once."""
        first, *further = self.all_targets
        return group_name(first.slug, [each.slug for each in further])

    @property
    def place(self) -> str:
        """For people: host/nvme0n1 + nvme1n1."""
        return f"{self.target.host.slug}/{self.target_names}"
