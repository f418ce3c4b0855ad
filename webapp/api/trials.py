"""Trials in detail: attempts, settings, samples and the engine's job."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Field, Router, Schema

from webapp.api.results import ResultOut
from webapp.api.runs import TrialOut
from webapp.core.errors import NotFound
from webapp.results.models import Attachment, KernelLine, Result, Sample, StreamRun
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.results.reading.trial_streams import StreamFigures, trial_streams
from webapp.results.selectors import (
    configuration_of,
    current_attempt,
    sensors_of,
    series,
    trial_with,
)
from webapp.runs.models import Attempt, SettingChange, Trial
from webapp.runs.selectors import phase_sentence

router = Router(tags=["results"])
MAX_SAMPLES = 10_000


class AttemptOut(Schema):
    id: UUID
    number: int
    state: str
    phase: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    outcome_code: str
    outcome: str

    @staticmethod
    def resolve_phase(attempt: Attempt) -> str:
        return phase_sentence(attempt)


class SettingOut(Schema):
    at: datetime
    name: str
    device: str
    before: str
    asked: str
    observed: str
    restoring: bool
    restored: bool
    note: str


class KernelLineOut(Schema):
    """A storage error in the kernel log; `level` as in syslog: 3 error, 4 warning.

    Lines with `elsewhere` name nothing of the trial and do not count for it.
    """

    sequence: int
    at: datetime
    level: int
    text: str
    elsewhere: bool


class StreamOut(Schema):
    """One direction of one stream. Times are seconds after the first stream's start."""

    stream: int
    name: str  # of a stream with its own workload, else ""
    target: str
    device: str
    direction: str
    iops: float | None  # null for a resync, like its latencies
    bytes_per_s: float | None  # null for transactions
    latency_mean_ns: float | None
    p99_ns: int | None
    share_percent: float | None
    started_s: float
    ended_s: float


class TrialDetail(TrialOut):
    """`settings` (requested and observed) and `configuration` (observed) are of the newest attempt.

    `streams`: the results of each stream if several ran at once. `results` are their sums, or those of each stream if
    the streams have names; then `further_workloads` are the workloads of all streams but the first.
    """

    workload: dict[str, Any]
    further_workloads: list[dict[str, Any]]
    attempts: list[AttemptOut]
    settings: list[SettingOut]
    configuration: dict[str, str]
    results: list[ResultOut]
    streams: list[StreamOut]
    kernel_log: list[KernelLineOut]

    @staticmethod
    def resolve_kernel_log(trial: Trial) -> list[KernelLine]:
        return list(KernelLine.objects.filter(attempt=current_attempt(trial)).order_by("sequence"))

    @staticmethod
    def resolve_attempts(trial: Trial) -> list[Attempt]:
        return list(trial.attempts.order_by("number"))

    @staticmethod
    def resolve_settings(trial: Trial) -> list[SettingChange]:
        return list(SettingChange.objects.filter(attempt=current_attempt(trial)).order_by("at", "pk"))

    @staticmethod
    def resolve_configuration(trial: Trial) -> dict[str, str]:
        return configuration_of(trial)

    @staticmethod
    def resolve_results(trial: Trial) -> list[ResultRow]:
        return _results(trial)

    @staticmethod
    def resolve_streams(trial: Trial) -> list[StreamFigures]:
        streams = trial_streams(trial, _results(trial))
        return list(streams.figures) if streams else []


class SampleOut(Schema):
    """One direction of an interval of about a second. Rates: I/Os and bytes divided by its length.

    `estimated`: the engine reported nothing at its end, so its I/Os are a share of those of a longer time.
    """

    stream: int
    offset_ms: int  # end of the interval, since the measured part began
    length_ms: int
    direction: str
    at: datetime  # of the end
    estimated: bool
    ios: int
    bytes: int
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    queue_depth: float | None
    utilisation_percent: float | None
    telemetry: list[float | None] | None  # in the order of the series' `sensors`; in one direction only
    iops_min: float | None
    iops_mean: float | None
    iops_max: float | None


class SensorOut(Schema):
    """What one value of `telemetry` is: see SensorKind in docs/reference/message-contract.md for units."""

    kind: str
    name: str


class SeriesOut(Schema):
    """`attempt` is the newest attempt, null before the first. For more samples, set `after_ms` to the last offset."""

    attempt: UUID | None
    state: str
    sensors: list[SensorOut]
    samples: list[SampleOut]
    more: bool


class AttachmentOut(Schema):
    """A file from the engine, such as fio's JSON output."""

    name: str
    media_type: str
    text: str

    @staticmethod
    def resolve_text(attachment: Attachment) -> str:
        return attachment.content.decode(errors="replace")


class JobOut(Schema):
    """The job text of a stream's engine, and its output."""

    stream: int
    job_text: str
    command: list[str]
    engine_version: str
    exit_code: int | None
    stopped: dict[str, Any] | None  # how its stop rule ended it: Stopped in the message contract; null without one
    stderr: str
    metrics: list[dict[str, Any]]
    attachments: list[AttachmentOut]

    @staticmethod
    def resolve_attachments(stream: StreamRun) -> list[Attachment]:
        return list(stream.attachments.all())


def _results(trial: Trial) -> list[ResultRow]:
    return read_rows(Result.objects.filter(trial=trial).order_by("stream_run__stream", "direction"))


@router.get("/trials/{trial_id}", response=TrialDetail)
def trial(request: HttpRequest, trial_id: UUID) -> Trial:
    """A trial with its attempts, settings and results."""
    return trial_with(str(trial_id))


@router.get("/trials/{trial_id}/samples", response=SeriesOut)
def samples(
    request: HttpRequest,
    trial_id: UUID,
    after_ms: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] = 3600,
) -> dict[str, object]:
    """Samples of the newest attempt, by offset. A response never splits the directions of a sample."""
    attempt = current_attempt(trial_with(str(trial_id)))
    if attempt is None:
        return {"attempt": None, "state": "planned", "sensors": [], "samples": [], "more": False}
    rows = list(series(attempt, after_ms=after_ms)[: limit + 1])
    more = len(rows) > limit
    return {
        "attempt": attempt.pk,
        "state": attempt.state,
        "sensors": [{"kind": kind, "name": name} for kind, name in sensors_of(attempt)],
        "samples": _whole(rows) if more else rows,
        "more": more,
    }


def _whole(rows: list[Sample]) -> list[Sample]:
    """The samples without the last, possibly incomplete offset, unless it is the only one."""
    complete = [sample for sample in rows if sample.offset_ms < rows[-1].offset_ms]
    return complete or rows


@router.get("/trials/{trial_id}/job", response=list[JobOut])
def job(request: HttpRequest, trial_id: UUID) -> list[StreamRun]:
    """The exact job and the engine's own output, for each stream of the newest attempt. 404 before it started."""
    attempt = current_attempt(trial_with(str(trial_id)))
    streams_of_attempt = StreamRun.objects.filter(attempt=attempt).prefetch_related("attachments").order_by("stream")
    streams = list(streams_of_attempt) if attempt else []
    if not streams:
        raise NotFound("job_unknown", f"No engine was started for trial {trial_id}.")
    return streams
