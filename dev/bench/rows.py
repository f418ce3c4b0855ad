"""Rows for the benchmark of pages: many results as real runs leave them, without fio's own output.

Every run is one plan's grid on one target: patterns x block sizes x depths, three repeats. Numbers follow a simple
model of a drive, with noise from a fixed seed, so every filling is the same. The first run of each grid is written
through the models. PostgreSQL copies it for the other runs, with another target, plan, configuration, time and noise.
Every `NIGHTLY`th run is the same plan and grid at the first target, so that there is a trend. Most indexes are created
after the rows, because that takes a third of the time.
"""

import itertools
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import Model

from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument
from webapp.plans.models import PlanVersion
from webapp.plans.points import applicable, point_key, with_defaults
from webapp.plans.values import Value
from webapp.results.models import Configuration, Result, StreamRun
from webapp.runs.models import Attempt, AttemptState, Run, RunState, Transition, Trial, TrialState
from webapp.runs.models.attempt import NextInSequence
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import a_configuration
from worker.contract.packing import Histogram, pack

HOSTS, PLANS, REPEATS = 8, 12, 3
NIGHTLY = 8
MODELS = ("SAMSUNG MZQL21T9HCJR", "INTEL SSDPF2KX038TZ", "MICRON 7450 MTFDKCC3T8", "KIOXIA KCD8XRUG3T84")
PATTERNS, SIZES = ("randread", "randwrite", "read", "write"), tuple(4096 * 2**n for n in range(7))
DEPTHS = (1, 2, 4, 8, 16, 32)
SCHEDULERS, ENGINES = ("none", "mq-deadline", "kyber"), ("io_uring", "libaio", "psync")
BEGAN = datetime(2025, 1, 1, tzinfo=UTC)
TRIAL_S = 11
WAY = (TrialState.PLANNED, TrialState.DISPATCHED, TrialState.ACCEPTED, TrialState.RUNNING, TrialState.DONE)
NOISE = "1 + 0.04 * (random() + random() + random() - 1.5)"  # standard deviation 0.02
NOISY = {name: f"{name} * noise" for name in ("ios", "bytes", "iops", "bytes_per_s")} | {
    name: f"{name} / noise"
    for name in (
        "latency_min_ns", "latency_mean_ns", "latency_max_ns", "latency_stddev_ns", "p50_ns", "p95_ns", "p99_ns",
        "p999_ns",
    )
}  # fmt: skip
Point = dict[str, Value]


@dataclass(frozen=True)
class _Grid:
    """The points of one kind of run, each with its key."""

    points: tuple[tuple[Point, str], ...]


def fill(results: int) -> int:
    """Create at least this many results inside a transaction; the number created."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # skips the check of foreign keys
        cursor.execute("SET LOCAL maintenance_work_mem = '1GB'")
        cursor.execute("SELECT setseed(0.5)")
        for way in ("seqscan", "hashjoin", "mergejoin"):  # there are no statistics: each copy would read whole tables
            cursor.execute(f"SET LOCAL enable_{way} = off")
    with _without_indexes(Trial, Attempt, Transition, StreamRun, Result):
        return _fill_runs(results)


@contextmanager
def _without_indexes(*models: type[Model]) -> Iterator[None]:
    """Drop the indexes of these tables and create them at the end. Unique ones stay, and those by which runs are
    copied."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s)"
            " AND indexdef LIKE 'CREATE INDEX %%' AND indexdef NOT LIKE '%%(run_id%%'",
            [[_table(model) for model in models]],
        )
        dropped = cursor.fetchall()
        for name, _ in dropped:
            cursor.execute(f"DROP INDEX {name}")
        yield
        for _, definition in dropped:
            cursor.execute(definition)


def _fill_runs(results: int) -> int:
    chance = random.Random(1)  # noqa: S311 - the same rows each time
    targets = _targets()
    versions = [_version(n) for n in range(PLANS)]
    configurations = [_configuration(n) for n in range(6)]
    grids = [_grid(scheduler, engine) for scheduler in SCHEDULERS for engine in ENGINES]
    histograms = [pack(_histogram(mean)) for mean in (20_000, 80_000, 300_000, 1_500_000)]
    originals: dict[int, Run] = {}
    made = number = 0
    while made < results:
        number += 1
        n, target, configuration = chance.randrange(len(grids)), chance.choice(targets), chance.choice(configurations)
        version = chance.choice(versions)
        if number % NIGHTLY == 0:
            n, target, version = 0, targets[0], versions[0]
        run = _run(number, version, target, trials=REPEATS * len(grids[n].points))
        if n in originals:
            _copy_run(originals[n], run, target, configuration)
        else:
            originals[n] = run
            _fill_run(run, target, grids[n], configuration, histograms, chance)
        made += run.trial_count
    return made


def _targets() -> list[Target]:
    hosts = [a_host(f"storage{n}") for n in range(HOSTS)]
    return [
        a_drive(host, f"nvme{m}", serial=f"S64G{n}{m}R800123", model=MODELS[(n + m) % len(MODELS)])
        for n, host in enumerate(hosts)
        for m in range(2)
    ]


def _version(n: int) -> PlanVersion:
    document = PlanDocument(title=f"Grid {n}", parts=(Part(name="a", factors={"pattern": ", ".join(PATTERNS)}),))
    return a_version(document, f"grid-{n}")


def _configuration(n: int) -> Configuration:
    facts = {f"device.nvme0n1.fact{m}": str(m) for m in range(60)} | {
        "device.nvme0n1.firmware": f"GDC{n // 2}", "kernel.release": f"6.{1 + n % 2}.0",
    }  # fmt: skip
    return a_configuration(facts)


def _grid(scheduler: str, engine: str) -> _Grid:
    plain = {name: values[0] for name, values in with_defaults({"pattern": ("randread",)}, drop_caches=False).items()}
    levels = itertools.product(PATTERNS, SIZES, DEPTHS)
    points = [
        applicable(
            plain
            | {"pattern": pattern, "block_size": size, "iodepth": depth, "ioengine": engine, "scheduler": scheduler}
        )
        for pattern, size, depth in levels
    ]
    return _Grid(tuple((point, point_key(point)) for point in points))


def _histogram(mean_ns: int) -> Histogram:
    """150 buckets around the mean, with a long tail."""
    buckets = sorted({int(mean_ns * 0.5 * 1.03**n) for n in range(150)})
    counts = (max(1, int(200_000 * 0.94 ** abs(n - 25))) for n in range(len(buckets)))
    return Histogram(latency_ns=tuple(buckets), counts=tuple(counts))


def _run(number: int, version: PlanVersion, target: Target, *, trials: int) -> Run:
    at = BEGAN + timedelta(hours=2 * number)
    run = Run.objects.create(
        number=number, version=version, seed=number, trial_count=trials, state=RunState.DONE, started_at=at,
        ended_at=at + timedelta(seconds=TRIAL_S * trials),
    )  # fmt: skip
    run.targets.add(target)
    return run


def _fill_run(
    run: Run, target: Target, grid: _Grid, configuration: Configuration, histograms: Sequence[bytes],
    chance: random.Random,
) -> None:  # fmt: skip
    trials = list(_trials(run, target, grid))
    attempts = [
        Attempt(
            id=uuid.uuid4(), kind="trial", run=run, trial=trial, host_id=target.host_id, state=AttemptState.DONE,
            lease_until=BEGAN,
        )
        for trial in trials
    ]  # fmt: skip
    Trial.objects.bulk_create(trials)
    Attempt.objects.bulk_create(attempts)
    Transition.objects.bulk_create(move for pair in zip(trials, attempts, strict=True) for move in _moves(*pair))
    streams = StreamRun.objects.bulk_create(_stream(attempt, run, configuration) for attempt in attempts)
    pairs = zip(trials, streams, strict=True)
    Result.objects.bulk_create(_result(trial, stream, chance, histograms) for trial, stream in pairs)


def _trials(run: Run, target: Target, grid: _Grid) -> Iterator[Trial]:
    for index, (repeat, (point, key)) in enumerate(itertools.product(range(1, REPEATS + 1), grid.points)):
        yield Trial(
            id=uuid.uuid4(), run=run, index=index, repeat=repeat, part="a", host_id=target.host_id, target=target,
            point=point, point_key=key, workload={}, state=TrialState.DONE,
        )  # fmt: skip


def _moves(trial: Trial, attempt: Attempt) -> Iterator[Transition]:
    for before, after in itertools.pairwise(WAY):
        yield Transition(run_id=trial.run_id, trial=trial, attempt=attempt, before=before, after=after)


def _stream(attempt: Attempt, run: Run, configuration: Configuration) -> StreamRun:
    return StreamRun(
        attempt=attempt, stream=0, job_text="[sweetspot]\nrw=randread\n", command=["fio", "-"],
        engine_version="fio-3.33",
        configuration=configuration, started_at=run.started_at or BEGAN,
    )  # fmt: skip


def _result(trial: Trial, stream: StreamRun, chance: random.Random, histograms: Sequence[bytes]) -> Result:
    point = trial.point
    direction = "read" if "read" in point["pattern"] else "write"
    depth, size = point["iodepth"], point["block_size"]
    iops = min(700_000, 12_000 * depth**0.9) * (4096 / size) ** 0.6 * chance.gauss(1, 0.02)
    latency_ns = depth * 1e9 / iops
    return Result(
        trial=trial, stream_run=stream, direction=direction, run_id=trial.run_id, host_id=trial.host_id,
        target_id=trial.target_id, repeat=trial.repeat, point=point, point_key=trial.point_key,
        measured_at=stream.started_at + timedelta(seconds=TRIAL_S * trial.index), ios=int(iops * 10),
        bytes=int(iops * 10 * size), runtime_ms=10_000, iops=iops, bytes_per_s=iops * size, latency_kind="lat",
        latency_min_ns=latency_ns * 0.6, latency_mean_ns=latency_ns, latency_max_ns=latency_ns * 40,
        latency_stddev_ns=latency_ns * 0.2, p50_ns=int(latency_ns * 0.95), p95_ns=int(latency_ns * 1.5),
        p99_ns=int(latency_ns * 2.1), p999_ns=int(latency_ns * 4.2) if iops > 1000 else None,
        latency=chance.choice(histograms), invalid=chance.random() < 0.001,
    )  # fmt: skip


def _copy_run(original: Run, run: Run, target: Target, configuration: Configuration) -> None:
    """Copy all rows of a run to another; the id of a copied trial or attempt is a digest of the original's."""

    def new(id_: str) -> str:
        return f"md5('{run.number}' || {id_})::uuid"

    of_run, streams = f"run_id = '{original.pk}'", _table(StreamRun)
    of_attempts = f"attempt_id IN (SELECT id FROM {_table(Attempt)} WHERE {of_run})"  # noqa: S608 - all of it is ours
    its_attempt = new(f"(SELECT attempt_id FROM {streams} WHERE id = stream_run_id)")  # noqa: S608
    later = f" + interval '{2 * (run.number - original.number)} hours'"
    places = {"run_id": f"'{run.pk}'", "host_id": f"'{target.host_id}'", "target_id": f"'{target.pk}'"}
    ids = {name: new(name) for name in ("trial_id", "attempt_id")}
    stream = {"configuration_id": f"'{configuration.pk}'", "started_at": f"started_at{later}"}
    result = {
        "stream_run_id": f"(SELECT id FROM {streams} WHERE attempt_id = {its_attempt})",  # noqa: S608
        "measured_at": f"measured_at{later}", "invalid": "random() < 0.001",
    }  # fmt: skip
    _copy(Trial, of_run, {"id": new("id")} | places)
    _copy(Attempt, of_run, {"id": new("id")} | places | ids)
    _copy(Transition, of_run, places | ids)
    _copy(StreamRun, of_attempts, ids | stream)
    _copy(Result, of_run, places | ids | result | NOISY)


def _copy(model: type[Model], condition: str, changed: Mapping[str, str]) -> None:
    """Copy rows; `changed` maps columns to SQL for their new values. The database assigns new ids and sequences."""
    fields = model._meta.concrete_fields
    made_there = {"id", *(field.column for field in fields if isinstance(field.db_default, NextInSequence))}
    columns = [str(field.column) for field in fields if field.column in changed or field.column not in made_there]
    values = ", ".join(changed.get(name, name) for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_table(model)} ({', '.join(columns)}) SELECT {values} "  # noqa: S608 - all of it is ours
            f"FROM (SELECT *, {NOISE} AS noise FROM {_table(model)} WHERE {condition} ORDER BY id) AS original"
        )


def _table(model: type[Model]) -> str:
    return model._meta.db_table
