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
from worker.contract.histogram import Histogram
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
from worker.contract.packing import pack
from worker.contract.reports import Batch, Report

if TYPE_CHECKING:
    from webapp.hosts.models import Target
    from webapp.runs.models import Attempt, Run, Trial

REPORT = "/api/worker/v1/report"
BUCKETS = 150  # of a second at queue depth 4, see docs/decisions/0003
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


def create_hosts(count: int, *, started: bool = True) -> list[SimulatedHost]:
    """Hosts with one trial each, all of one run. Call after django.setup().

    `started`: the server has heard that the attempt is running; otherwise its order was only sent.
    """
    from webapp.core.tokens import new_token

    tokens = [new_token() for _ in range(count)]
    targets = _create_targets([digest for _, digest in tokens])
    attempts = _create_attempts(_create_trials(targets, started=started), started=started)
    return [SimulatedHost(token, each.pk) for (token, _), each in zip(tokens, attempts, strict=True)]


def _create_targets(token_hashes: list[str]) -> "list[Target]":
    from django.utils import timezone

    from webapp.hosts.models import Host, Target

    first = Host.objects.count()  # an earlier mode may have created some
    hosts: list[Host] = Host.objects.bulk_create(
        Host(slug=f"bench{n}", hostname="bench", token_hash=digest, last_seen_at=timezone.now())
        for n, digest in enumerate(token_hashes, first)
    )
    return Target.objects.bulk_create(
        Target(host=host, slug="drive", kind="block", path="/dev/null", stable_id=host.slug, lock_keys=[host.slug])
        for host in hosts
    )


def _create_trials(targets: "list[Target]", *, started: bool) -> "list[Trial]":
    from webapp.runs.models import Trial

    run = _create_run(len(targets))
    return Trial.objects.bulk_create(
        Trial(
            run=run, index=n, repeat=1, part="bench", host=target.host, target=target, point=POINT, point_key="bench",
            workload={}, state="running" if started else "dispatched",
        )
        for n, target in enumerate(targets)
    )  # fmt: skip


def _create_attempts(trials: "list[Trial]", *, started: bool) -> "list[Attempt]":
    from django.utils import timezone

    from webapp.results.models import StreamRun
    from webapp.runs.models import Attempt

    now = timezone.now()
    later = now + timedelta(hours=2)
    heard = {"state": "running", "confirmed_seq": 1, "accepted_at": now, "started_at": now}
    attempts = Attempt.objects.bulk_create(
        Attempt(
            kind="trial", run=trial.run, trial=trial, host=trial.host, lease_until=later, published_at=later,
            **(heard if started else {"state": "dispatched"}),
        )
        for trial in trials
    )  # fmt: skip
    if not started:
        return attempts
    StreamRun.objects.bulk_create(
        StreamRun(attempt=each, stream=stream, job_text="", command=[], started_at=now)
        for each in attempts
        for stream in (0, 1)
    )
    return attempts


def _create_run(trials: int) -> "Run":
    from django.db.models import Max

    from webapp.plans.document import Part, PlanDocument, write
    from webapp.plans.models import Plan, PlanVersion
    from webapp.runs.models import Run

    document = write(PlanDocument(title="Bench", parts=(Part(name="a", factors={"pattern": "randread"}),)))
    plan, _ = Plan.objects.get_or_create(slug="ingest-bench", defaults={"title": "Bench"})
    version, _ = PlanVersion.objects.get_or_create(plan=plan, number=1, defaults={"document": document})
    number = 1 + (Run.objects.aggregate(highest=Max("number"))["highest"] or 0)
    return Run.objects.create(number=number, version=version, seed=1, trial_count=trials, state="running")
