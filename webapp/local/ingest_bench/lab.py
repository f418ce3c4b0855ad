"""Hosts, attempts and reports for the bench: real rows, and messages of the size that real ones have."""

import json
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from worker.contract.base import encode
from worker.contract.histogram import Histogram
from worker.contract.items import (
    Accepted,
    DeviceSample,
    Direction,
    DirectionResult,
    DirectionSample,
    Finished,
    Item,
    LatencyKind,
    Observed,
    Outcome,
    Phase,
    Sample,
    Sensor,
    SensorKind,
    StreamResult,
    StreamStarted,
)
from worker.contract.packing import pack
from worker.contract.reports import Batch, Report

if TYPE_CHECKING:
    from webapp.runs.models import Run

BUCKETS = 150  # of a second at queue depth 4 or so, see decision 3


def _midpoint(index: int) -> int:
    """Of fio's bucket `index`, from 64 on (stat.c: plat_idx_to_val)."""
    bits = (index >> 6) - 1
    return (1 << (bits + 6)) + (2 * (index % 64) + 1 << bits) // 2


def _histogram() -> Histogram:
    """fio's buckets from 20 µs on, counts that rise and fall."""
    dice = random.Random(1)  # noqa: S311
    latencies = [_midpoint(590 + n) for n in range(BUCKETS)]
    return Histogram(latency_ns=tuple(latencies), counts=tuple(1 + int(dice.lognormvariate(4, 1.2)) for _ in latencies))


HISTOGRAM = _histogram()
IOS = sum(HISTOGRAM.counts)
SENSORS = tuple(Sensor(kind=SensorKind.CPU_USER, name=f"cpu{n}") for n in range(16))
POINT = {
    "pattern": "randread", "block_size": 4096, "iodepth": 4, "numjobs": 1, "ioengine": "io_uring", "direct": True,
    "runtime": 60, "size": 16 << 20, "buffers": "incompressible", "scheduler": "none", "read_ahead_kb": 128,
}  # fmt: skip
SECOND = Sample(
    stream=0, second=0, at=time.time(), interval_ms=1000,
    directions=(
        DirectionSample(
            direction=Direction.READ, ios=IOS, bytes=IOS * 4096, runtime_ms=1000, latency=pack(HISTOGRAM),
            p50_ns=30_000, p99_ns=39_000, p999_ns=39_900,
        ),
    ),
    device=DeviceSample(
        device="nvme0n1", utilisation_percent=99.5, queue_depth=3.9, read_ios=IOS, write_ios=0,
        read_bytes=IOS * 4096, write_bytes=0,
    ),
    beside=tuple(0.5 * n for n in range(len(SENSORS))),
)  # fmt: skip


@dataclass(frozen=True)
class Player:
    """A host of the bench, with an attempt under way."""

    token: str
    attempt: UUID

    def head(self, path: str, length: int) -> bytes:
        return (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        ).encode()

    def second(self, number: int, at: float) -> bytes:
        """The request that reports second `number` (from 0) of a trial that has begun."""
        sample = msgspec.structs.replace(SECOND, second=number, at=at)
        batch = Batch(attempt=str(self.attempt), seq=number + 2, items=(sample,))
        return self.request(Report(batches=(batch,), active=(str(self.attempt),)))

    def seconds(self, first: int, count: int) -> bytes:
        """The request that reports several seconds, a batch each."""
        name, now = str(self.attempt), time.time()
        samples = [msgspec.structs.replace(SECOND, second=first + n, at=now) for n in range(count)]
        batches = [Batch(attempt=name, seq=first + n + 2, items=(sample,)) for n, sample in enumerate(samples)]
        return self.request(Report(batches=tuple(batches), active=(name,)))

    def request(self, report: Report) -> bytes:
        body = encode(report)
        return self.head("/api/worker/v1/report", len(body)) + body

    def bare(self, number: int) -> bytes:
        return self.head(f"/bare/{self.attempt}/{number}", 0)

    def story(self, seconds: int) -> bytes:
        """A whole trial in one report, as it is resent after an outage: no attempt is active any more."""
        now = time.time()
        name = str(self.attempt)
        samples = [msgspec.structs.replace(SECOND, second=n, at=now + n) for n in range(seconds)]
        items: list[tuple[Item, ...]] = [
            (Accepted(at=now, worker_version="0.1.0"),),
            (*(Phase(at=now, name=name) for name in ("guard", "settings", "run")), _observed(now), _started(now)),
            *((sample,) for sample in samples),
        ]
        items.append((_result(now, seconds), Finished(at=now, outcome=Outcome.DONE)))
        return self.request(Report(batches=tuple(Batch(attempt=name, seq=n, items=i) for n, i in enumerate(items, 1))))


def _observed(at: float) -> Observed:
    return Observed(at=at, facts={f"device.nvme0n1.fact{n}": f"value {n}" for n in range(40)})


def _started(at: float) -> StreamStarted:
    job = "[stream0]\nrw=randread\n" * 10
    return StreamStarted(at=at, stream=0, job_text=job, command=("fio", "-"), sensors=SENSORS, kernel_log=True)


def _result(at: float, seconds: int) -> StreamResult:
    whole = Histogram(latency_ns=HISTOGRAM.latency_ns, counts=tuple(seconds * count for count in HISTOGRAM.counts))
    direction = DirectionResult(
        direction=Direction.READ, ios=IOS * seconds, bytes=IOS * 4096 * seconds, runtime_ms=1000 * seconds,
        iops=float(IOS), bytes_per_s=IOS * 4096.0, latency_kind=LatencyKind.LAT, latency_min_ns=20_000,
        latency_mean_ns=30_000, latency_max_ns=45_000, latency_stddev_ns=3_000, latency=pack(whole),
    )  # fmt: skip
    return StreamResult(
        stream=0, started_at=at, ended_at=at + seconds, fio_version="fio-3.33", exit_code=0,
        fio_json=json.dumps({"fio version": "fio-3.33", "jobs": [{"filler": "x" * 8000}]}), stderr="",
        directions=(direction,), usr_cpu_percent=10, sys_cpu_percent=20, device=SECOND.device, samples=seconds,
    )  # fmt: skip


def make_players(count: int, *, running: bool) -> list[Player]:
    """So many hosts, each with one trial of one run and an attempt at it: dispatched, or streaming."""
    from django.utils import timezone

    from webapp.core.tokens import new_token
    from webapp.hosts.models import Host, Target
    from webapp.results.models import StreamRun
    from webapp.runs.models import Attempt, Trial

    now = timezone.now()
    secrets = [new_token() for _ in range(count)]
    run, first = _run(count), Host.objects.count()
    hosts = [
        Host(slug=f"bench{first + n}", hostname="bench", token_hash=digest, last_seen_at=now)
        for n, (_, digest) in enumerate(secrets)
    ]
    Host.objects.bulk_create(hosts)
    targets = [
        Target(host=host, slug="drive", kind="block", path="/dev/null", stable_id=host.slug, lock_keys=[host.slug])
        for host in hosts
    ]
    Target.objects.bulk_create(targets)
    trials = [
        Trial(
            run=run, index=n, repeat=1, part="bench", host=target.host, target=target, point=POINT,
            point_key="bench", workload={}, state="running" if running else "dispatched",
        )
        for n, target in enumerate(targets)
    ]  # fmt: skip
    Trial.objects.bulk_create(trials)
    attempts = [
        Attempt(
            kind="trial", run=run, trial=trial, host=trial.host, lease_until=now + timedelta(hours=2),
            published_at=now + timedelta(hours=2), state="running" if running else "dispatched",
            **({"confirmed_seq": 1, "accepted_at": now, "started_at": now} if running else {}),
        )
        for trial in trials
    ]  # fmt: skip
    Attempt.objects.bulk_create(attempts)
    if running:
        StreamRun.objects.bulk_create(
            StreamRun(attempt=each, stream=stream, job_text="", command=[], started_at=now)
            for each in attempts
            for stream in (0, 1)
        )
    return [Player(plain, each.pk) for (plain, _), each in zip(secrets, attempts, strict=True)]


def _run(trials: int) -> "Run":
    from django.db.models import Max

    from webapp.plans.document import Part, PlanDocument, write
    from webapp.plans.models import Plan, PlanVersion
    from webapp.runs.models import Run

    document = write(PlanDocument(title="Bench", parts=(Part(name="a", factors={"pattern": "randread"}),)))
    plan, _ = Plan.objects.get_or_create(slug="ingest-bench", defaults={"title": "Bench"})
    version, _ = PlanVersion.objects.get_or_create(plan=plan, number=1, defaults={"document": document})
    number = 1 + (Run.objects.aggregate(highest=Max("number"))["highest"] or 0)
    return Run.objects.create(number=number, version=version, seed=1, trial_count=trials, state="running")


def end_runs() -> None:
    """Nothing is left to do for any host, so that no tick works for a pair of measurements while the next is made."""
    from webapp.runs.models import Attempt, Run

    Attempt.objects.filter(kind="close_run").delete()
    Run.objects.update(state="done", queue_place=None)
