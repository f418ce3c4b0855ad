"""Simulated hosts for the benchmark: real rows in the database, and reports of realistic size."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from worker.contract.base import encode
from worker.contract.items import (
    Accepted,
    Attachment,
    DeviceSample,
    Direction,
    DirectionResult,
    DirectionSample,
    Finished,
    Item,
    LatencyKind,
    MediaType,
    Observed,
    Outcome,
    Sample,
    Sensor,
    SensorKind,
    StreamResult,
    StreamStarted,
)
from worker.contract.packing import Histogram, pack
from worker.contract.reports import Batch, Report

if TYPE_CHECKING:
    from webapp.runs.models import Attempt, Trial

REPORT = "/api/worker/v1/report"
BUCKETS = 150  # of a second at queue depth 4, see docs/understanding/decisions/0003
SENSORS = 16
POINT = {
    "pattern": "randread", "block_size": 4096, "iodepth": 4, "numjobs": 1, "ioengine": "io_uring", "direct": True,
    "runtime": 60, "size": 16 << 20, "buffers": "incompressible", "scheduler": "none", "read_ahead_kb": 128,
}  # fmt: skip


def _midpoint(index: int) -> int:
    """Of fio's bucket `index`, from 64 on (stat.c: plat_idx_to_val)."""
    bits = (index >> 6) - 1
    return (1 << (bits + 6)) + (2 * (index % 64) + 1 << bits) // 2


def _histogram() -> Histogram:
    """fio's buckets from 20 µs on, with random counts."""
    random_ = random.Random(1)  # noqa: S311
    latencies = [_midpoint(590 + n) for n in range(BUCKETS)]
    return Histogram(
        latency_ns=tuple(latencies), counts=tuple(1 + int(random_.lognormvariate(4, 1.2)) for _ in latencies)
    )


HISTOGRAM = _histogram()
IOS = sum(HISTOGRAM.counts)
SECOND = Sample(
    stream=0, offset_ms=1000, length_ms=1000, at=time.time(),
    directions=(
        DirectionSample(
            direction=Direction.READ, ios=IOS, bytes=IOS * 4096, latency=pack(HISTOGRAM),
            p50_ns=30_000, p99_ns=39_000, p999_ns=39_900,
        ),
    ),
    device=DeviceSample(
        device="nvme0n1", utilisation_percent=99.5, queue_depth=3.9, read_ios=IOS, write_ios=0,
        read_bytes=IOS * 4096, write_bytes=0,
    ),
    telemetry=tuple(0.5 * n for n in range(SENSORS)),
)  # fmt: skip


@dataclass(frozen=True)
class SimulatedHost:
    """A host with a running attempt, and its messages."""

    token: str
    attempt: UUID

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def report(self, first: int, ended_at: Sequence[float]) -> bytes:
        """The report of several seconds from number `first`, a batch each."""
        name = str(self.attempt)
        samples = [_sample(first + n, at) for n, at in enumerate(ended_at)]
        batches = [Batch(attempt=name, seq=sample.offset_ms // 1000 + 1, items=(sample,)) for sample in samples]
        return encode(Report(batches=tuple(batches), active=(name,)))

    def whole_trial(self, seconds: int) -> bytes:
        """A whole trial in one report, as it is resent after an outage: no attempt is active any more."""
        now, name = time.time(), str(self.attempt)
        items: list[tuple[Item, ...]] = [
            (Accepted(at=now, worker_version="0.1.0"),),
            (Observed(at=now, facts={f"device.nvme0n1.fact{n}": f"value {n}" for n in range(40)}), _started(now)),
            *((_sample(n, now + n),) for n in range(seconds)),
            (_result(now, seconds), Finished(at=now, outcome=Outcome.DONE)),
        ]
        return encode(Report(batches=tuple(Batch(attempt=name, seq=n, items=i) for n, i in enumerate(items, 1))))


def _started(at: float) -> StreamStarted:
    sensors = tuple(Sensor(kind=SensorKind.CPU_USER, name=f"cpu{n}") for n in range(SENSORS))
    return StreamStarted(
        at=at,
        stream=0,
        job_text="[stream0]\nrw=randread\n" * 10,
        command=("fio", "-"),
        sensors=sensors,
        kernel_log=True,
    )


def _sample(number: int, at: float) -> Sample:
    return msgspec.structs.replace(SECOND, offset_ms=1000 * (number + 1), at=at)


def _result(at: float, seconds: int) -> StreamResult:
    whole = Histogram(latency_ns=HISTOGRAM.latency_ns, counts=tuple(seconds * count for count in HISTOGRAM.counts))
    direction = DirectionResult(
        direction=Direction.READ, ios=IOS * seconds, bytes=IOS * seconds * 4096, runtime_ms=1000 * seconds,
        iops=float(IOS), bytes_per_s=IOS * 4096.0, latency_kind=LatencyKind.LAT, latency_min_ns=1_000,
        latency_mean_ns=30_000, latency_max_ns=90_000, latency_stddev_ns=5_000, latency=pack(whole),
    )  # fmt: skip
    return StreamResult(
        stream=0, started_at=at, ended_at=at + seconds, engine_version="fio-3.33", exit_code=0,
        stderr="", directions=(direction,),
        usr_cpu_percent=5.0, sys_cpu_percent=20.0, samples=seconds,
        attachments=(Attachment(name="fio.json", media_type=MediaType.JSON, text="{}" * 2_000),),
    )  # fmt: skip


def create_hosts(count: int, *, started: bool = True, age: timedelta = timedelta(0)) -> list[SimulatedHost]:
    """Hosts with one trial each, all of one run. Call after django.setup().

    `started`: the server has heard that the attempt is running; otherwise its order was only sent. `age` of the
    attempts: the server refuses samples that end after the time that passed.
    """
    from django.db import transaction
    from django.utils import timezone

    from webapp.tests.factories.hosts import a_host_with_token, a_target
    from webapp.tests.factories.runs import a_run

    with transaction.atomic():
        hosts = [a_host_with_token() for _ in range(count)]
        run = a_run(*(a_target(host) for host, _ in hosts), trials=1, state="running")
        run.trials.update(point=POINT, state="running" if started else "dispatched")
        attempts = [_attempt(trial, started=started) for trial in run.trials.order_by("index")]
        run.attempts.update(created_at=timezone.now() - age)
    return [SimulatedHost(token, each.pk) for (_, token), each in zip(hosts, attempts, strict=True)]


def _attempt(trial: "Trial", *, started: bool) -> "Attempt":
    from django.utils import timezone

    from webapp.results.models import StreamRun
    from webapp.runs.models import Attempt

    now = timezone.now()
    later = now + timedelta(hours=2)
    heard = {"state": "running", "confirmed_seq": 1, "accepted_at": now, "started_at": now}
    attempt = Attempt.objects.create(
        kind="trial", run_id=trial.run_id, trial=trial, host_id=trial.host_id, lease_until=later, published_at=later,
        **(heard if started else {"state": "dispatched"}),
    )  # fmt: skip
    for stream in (0, 1) if started else ():
        StreamRun.objects.create(attempt=attempt, stream=stream, job_text="", command=[], started_at=now)
    return attempt
