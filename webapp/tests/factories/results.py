"""What finished trials leave: streams, samples and results, with given or with plausible numbers."""

import hashlib
import json
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.db.models import F
from django.utils import timezone

from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.plans.points import point_key, settings_of, workloads_of
from webapp.plans.values import Value
from webapp.results.models import Attachment, Configuration, Result, Sample, StreamRun
from webapp.results.reading.content import CONTROLLER_FACT, without_device_names
from webapp.runs.models import Attempt, AttemptState, Run, RunState, SettingChange, Trial, TrialState
from webapp.tests.factories.plans import a_point, a_version
from webapp.tests.factories.runs import finish_moves

START = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
FACTS = {"kernel.release": "6.1.0", "device.scheduler": "none"}


@dataclass
class Lab:
    """Trials of one run at one target, one after another."""

    target: Target
    run: Run = field(init=False)
    version: PlanVersion | None = None
    number: int = 1

    def __post_init__(self) -> None:
        version = self.version or a_version(slug=f"plan-{self.number}")
        self.run = Run.objects.create(
            number=self.number, version=version, seed=1, trial_count=0, state=RunState.DONE, started_at=START
        )
        self.run.targets.add(self.target)

    def measure(
        self,
        *values: float,
        facts: dict[str, str] | None = None,
        state: str = TrialState.DONE,
        invalid: bool = False,
        direction: str = "read",
        target: Target | None = None,
        fio: str = "fio-3.33",
        **levels: Value,
    ) -> list[Result]:
        """One trial for each value of IOPS, all at one point."""
        at = target or self.target
        point = a_point(**levels)
        first = self.run.trials.count()
        trials = Trial.objects.bulk_create(
            Trial(
                run=self.run, index=first + repeat - 1, repeat=repeat, part="a", host=at.host, target=at, point=point,
                point_key=point_key(point), workload=msgspec.to_builtins(workloads_of(point, seed=repeat)[0]),
                settings=settings_of(point), state=state, reason_code="fio_error" if state == TrialState.FAILED else "",
            )
            for repeat in range(1, len(values) + 1)
        )  # fmt: skip
        attempts = Attempt.objects.bulk_create(
            Attempt(
                kind="trial", run=self.run, trial=trial, host=at.host, state=AttemptState.DONE, lease_until=START
            )
            for trial in trials
        )  # fmt: skip
        configuration = a_configuration(FACTS if facts is None else facts)
        streams = StreamRun.objects.bulk_create(
            StreamRun(
                attempt=attempt, stream=0, job_text="[sweetspot]\nrw=randread\n", command=["fio", "-"],
                engine_version=fio, configuration=configuration, started_at=START + timedelta(seconds=trial.index),
            )
            for trial, attempt in zip(trials, attempts, strict=True)
        )  # fmt: skip
        Attachment.objects.bulk_create(
            Attachment(
                stream_run=stream, name="fio.json", media_type="application/json",
                compressed=zlib.compress(b'{"fio version": "fio-3.33"}'),
            )
            for stream in streams
        )  # fmt: skip
        return Result.objects.bulk_create(
            _measured(stream, value, direction, invalid) for stream, value in zip(streams, values, strict=True)
        )


def a_configuration(facts: dict[str, str]) -> Configuration:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    controller = without_device_names(facts).get(CONTROLLER_FACT, "")
    return Configuration.objects.get_or_create(digest=digest, defaults={"facts": facts, "controller": controller})[0]


def _measured(stream: StreamRun, iops: float, direction: str, invalid: bool) -> Result:
    trial = stream.attempt.trial
    assert trial is not None
    return Result(
        trial=trial, stream_run=stream, direction=direction, run=trial.run, host=trial.host, target=trial.target,
        repeat=trial.repeat, point=trial.point, point_key=trial.point_key, measured_at=stream.started_at,
        ios=int(iops * 3),
        bytes=int(iops * 3 * 4096), runtime_ms=3000, iops=iops, bytes_per_s=iops * 4096, latency_kind="lat",
        latency_min_ns=1000, latency_mean_ns=1e9 / iops, latency_max_ns=9e9, latency_stddev_ns=500, p50_ns=2000,
        p95_ns=3000, p99_ns=4000, p999_ns=None, latency=b"", invalid=invalid,
    )  # fmt: skip


def add_samples(attempt: Attempt, seconds: int) -> None:
    Sample.objects.bulk_create(
        Sample(
            attempt=attempt, stream=0, offset_ms=1000 * second, length_ms=1000, direction="read",
            at=START + timedelta(seconds=second), ios=100 + second, bytes=4096 * (100 + second), latency=b"",
        )
        for second in range(1, seconds + 1)
    )  # fmt: skip


# ---- plausible numbers of a data-centre NVMe drive


def direction_of(point: dict[str, Any]) -> str:
    return "read" if "read" in point["pattern"] else "write"


def speed_of(point: dict[str, Any], noise: random.Random) -> tuple[float, float]:
    """Plausible (IOPS, mean latency in ns) of a point on a data-centre NVMe drive."""
    service_ns = {"randread": 78_000, "randwrite": 14_000, "read": 160_000, "write": 95_000}[point["pattern"]]
    overhead_ns = 2_000 if point["ioengine"] == "io_uring" else 3_500
    limit = {"randread": 640_000, "randwrite": 180_000, "read": 52_000, "write": 21_000}[point["pattern"]]
    iops = min(limit, point["iodepth"] * 1e9 / (service_ns + overhead_ns)) * noise.uniform(0.97, 1.03)
    if point["ioengine"] == "psync":
        iops *= 0.88
    return iops, point["iodepth"] * 1e9 / iops


def add_seconds(attempt: Attempt, seconds: int, noise: random.Random, first: int = 0) -> None:
    """Samples of the attempt's seconds from `first` on."""
    Sample.objects.bulk_create(_samples(attempt, seconds, noise, first))


def _samples(attempt: Attempt, seconds: int, noise: random.Random, first: int = 0) -> Iterator[Sample]:
    assert attempt.trial is not None
    assert attempt.started_at is not None
    point = attempt.trial.point
    iops, latency_ns = speed_of(point, noise)
    for second in range(first, first + seconds):
        now = iops * noise.uniform(0.93, 1.05)
        yield Sample(
            attempt=attempt, stream=0, offset_ms=1000 * (second + 1), length_ms=1000, direction=direction_of(point),
            at=attempt.started_at + timedelta(seconds=second + 1), ios=int(now),
            bytes=int(now) * point["block_size"], p50_ns=int(latency_ns * 0.93),
            p99_ns=int(latency_ns * noise.uniform(1.7, 2.4)),
            p999_ns=int(latency_ns * noise.uniform(3, 6)) if now > 10_000 else None, latency=b"",
            utilisation_percent=noise.uniform(96, 100), queue_depth=point["iodepth"] * noise.uniform(0.9, 1),
        )  # fmt: skip


def finish_trial(trial: Trial, at: datetime | None = None, seconds: int = 3, seed: int = 0) -> Result:
    """The trial ran and is done, with samples, stream, settings and result."""
    at = at or timezone.now() - timedelta(seconds=seconds + 1)
    (result,) = _finish_trials([(trial, at)], seconds, seed)
    return result


def _finish_trials(trials: Sequence[tuple[Trial, datetime]], seconds: int, seed: int) -> list[Result]:
    """Trials and when each began. Rows of one kind are inserted together: the run of First look has 36 trials."""
    attempts = [_done_attempt(trial, at, seconds) for trial, at in trials]
    noises = [random.Random(f"{seed} {trial.index}") for trial, _ in trials]
    done = list(zip(attempts, noises, strict=True))
    Attempt.objects.bulk_create(attempts)
    Attempt.objects.filter(pk__in=[attempt.pk for attempt in attempts]).update(created_at=F("started_at"))
    Sample.objects.bulk_create(sample for attempt, noise in done for sample in _samples(attempt, seconds, noise))
    SettingChange.objects.bulk_create(_setting_change(attempt) for attempt in attempts)
    configuration = a_configuration(
        {"device.nvme0n1.scheduler": "none", "kernel.release": "6.1.0-25-amd64", "fio.version": "fio-3.33"}
    )
    streams = StreamRun.objects.bulk_create(_stream(attempt, configuration, seconds) for attempt in attempts)
    finish_moves(attempts)
    return Result.objects.bulk_create(
        _result(trial, stream, seconds, noise)
        for (trial, _), stream, noise in zip(trials, streams, noises, strict=True)
    )


def _done_attempt(trial: Trial, at: datetime, seconds: int) -> Attempt:
    return Attempt(
        kind="trial", run=trial.run, trial=trial, host=trial.host, state="done", started_at=at,
        ended_at=at + timedelta(seconds=seconds + 0.3), lease_until=at + timedelta(minutes=15),
        phase={"type": "phase", "at": 0.0, "name": "run"},
    )  # fmt: skip


def _setting_change(attempt: Attempt) -> SettingChange:
    assert attempt.started_at is not None
    return SettingChange(
        attempt=attempt, at=attempt.started_at, name="scheduler", device="nvme0n1", before="mq-deadline", asked="none",
        observed="none",
    )  # fmt: skip


def _stream(attempt: Attempt, configuration: Configuration, seconds: int) -> StreamRun:
    assert attempt.started_at is not None
    return StreamRun(
        attempt=attempt, stream=0, configuration=configuration, started_at=attempt.started_at,
        ended_at=attempt.started_at + timedelta(seconds=seconds),
        job_text="[global]\nioengine=io_uring\ndirect=1\n\n[sweetspot]\nrw=randread\nbs=4096\niodepth=32\nruntime=3\n",
        command=["fio", "--output-format=json+", "--status-interval=1", "-"], engine_version="fio-3.33", exit_code=0,
        stderr="fio: cpu affinity is not set\n", usr_cpu_percent=12.5, sys_cpu_percent=41.2, samples_sent=seconds,
    )  # fmt: skip


def _result(trial: Trial, stream: StreamRun, seconds: int, noise: random.Random) -> Result:
    iops, latency_ns = speed_of(trial.point, noise)
    measured_at = stream.attempt.ended_at
    assert measured_at is not None
    return Result(
        trial=trial, stream_run=stream, direction=direction_of(trial.point), run=trial.run, host=trial.host,
        target=trial.target, repeat=trial.repeat, point=trial.point, point_key=trial.point_key,
        measured_at=measured_at,
        ios=int(iops * seconds), bytes=int(iops * seconds) * trial.point["block_size"], runtime_ms=seconds * 1000,
        iops=iops, bytes_per_s=iops * trial.point["block_size"], latency_kind="lat", latency_min_ns=latency_ns * 0.6,
        latency_mean_ns=latency_ns, latency_max_ns=latency_ns * 40, latency_stddev_ns=latency_ns * 0.2,
        p50_ns=int(latency_ns * 0.95), p95_ns=int(latency_ns * 1.5), p99_ns=int(latency_ns * 2.1),
        p999_ns=int(latency_ns * 4.2) if iops * seconds > 10_000 else None, latency=b"",
    )  # fmt: skip


def finish_run(run: Run) -> None:
    """Every trial that is still planned is done, one after the other; then the run is."""
    began = run.started_at or timezone.now()
    trials = run.trials.filter(state="planned").select_related("run", "host", "target").order_by("index")
    begins = [(trial, began + timedelta(seconds=5 * place)) for place, trial in enumerate(trials)]
    if begins:
        _finish_trials(begins, seconds=3, seed=run.number)
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE, ended_at=timezone.now())
    run.refresh_from_db()
