"""The newest run and import, and reads of one trial: its attempts, samples and configuration. Results are read in
`reading`."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.db.models.lookups import IsNull

from webapp.core.errors import NotFound
from webapp.results.models import Import, KernelLine, Result, Sample, StreamRun
from webapp.runs.models import Attempt, Run, Trial


def newest_run() -> int | None:
    """The number of the newest run with a valid result."""
    valid = Result.objects.filter(run=OuterRef("pk"), invalid=False)
    return Run.objects.filter(Exists(valid)).order_by("-number").values_list("number", flat=True).first()


def newest_import() -> int | None:
    """The number of the newest import with a valid result; a reference only if no other import has one."""
    valid = Result.objects.filter(origin__imported=OuterRef("pk"), invalid=False)
    found = Import.objects.filter(Exists(valid)).order_by(IsNull(F("slug"), False), "-number")
    return found.values_list("number", flat=True).first()


def trial_with(trial_id: str) -> Trial:
    """A trial with its run, host and target. Raises Refusal trial_unknown."""
    found = Trial.objects.select_related("run", "host", "target__host").filter(pk=trial_id).first()
    if found is None:
        raise NotFound("trial_unknown", f"There is no trial {trial_id}.")
    return found


def current_attempt(trial: Trial) -> Attempt | None:
    """The newest attempt of a trial."""
    return trial.attempts.order_by("-number").first()


def configuration_of(trial: Trial) -> dict[str, str]:
    """The observed facts of the newest attempt, from its first stream with a configuration."""
    streams = StreamRun.objects.filter(attempt=current_attempt(trial), configuration__isnull=False)
    facts: dict[str, str] | None = streams.order_by("stream").values_list("configuration__facts", flat=True).first()
    return facts or {}


def series(attempt: Attempt, *, after_ms: int = 0) -> QuerySet[Sample]:
    """The samples of an attempt that end after offset `after_ms`, in order, without histograms."""
    samples = Sample.objects.filter(attempt=attempt, offset_ms__gt=after_ms).defer("latency")
    return samples.order_by("offset_ms", "stream", "direction")


def sensors_of(attempt: Attempt) -> list[tuple[str, str]]:
    """Kind and name of the telemetry sensors, in the order of the values in samples."""
    found = StreamRun.objects.filter(attempt=attempt).exclude(sensors=[]).values_list("sensors", flat=True).first()
    return [(kind, name) for kind, name in found or []]


def kernel_lines_of(trials: Iterable[Trial] | QuerySet[Any, Any]) -> Mapping[UUID, int]:
    """Storage errors in the kernel log, counted by trial over all attempts; trials without errors are missing."""
    said = KernelLine.objects.filter(attempt__trial__in=trials, elsewhere=False).order_by()
    counted = said.values_list("attempt__trial").annotate(Count("sequence"))
    return {trial: lines for trial, lines in counted if trial is not None}
