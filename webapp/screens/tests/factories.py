"""Rows as a real run leaves them, with plausible numbers, for the tests of the pages."""

import hashlib
import itertools
import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.utils import timezone

from webapp.core.models import Role, User
from webapp.hosts.models import Host, HostInventory, InventoryContent, Target
from webapp.plans.document import Part, PlanDocument, write
from webapp.plans.models import Plan, PlanVersion
from webapp.results.models import Configuration, Result, Sample, StreamRun
from webapp.runs.models import Attempt, Run, RunState, SettingChange, Transition, Trial
from webapp.runs.reasons import told
from worker.contract.inventory import BlockDevice, Cpu, Holder, Inventory, Kernel
from worker.contract.workload import FioWorkload, IoEngine, Pattern

PASSWORD = "correct horse battery"

FIRST_LOOK = PlanDocument(
    title="First look",
    note="What this storage does out of the box, and what io_uring brings.",
    common={"ioengine": "io_uring, psync", "sync_depth": "threads", "direct": "on", "size": "1g", "runtime": "3"},
    parts=(
        Part(name="random", factors={"pattern": "randread, randwrite", "block_size": "4k", "iodepth": "1, 32"}),
        Part(name="sequential", factors={"pattern": "read, write", "block_size": "128k", "iodepth": "8"}),
    ),
)


def make_user(name: str = "olga", role: Role = Role.OPERATOR) -> User:
    return User.objects.create_user(username=name, password=PASSWORD, role=role)


def inventory() -> Inventory:
    return Inventory(
        hostname="storage1.lab.example",
        distribution="Debian GNU/Linux 12",
        hypervisor="",
        cpu=Cpu(model="AMD EPYC 9354P", sockets=1, cores=32, threads=64, governor="performance"),
        memory_bytes=270_582_939_648,
        kernel=Kernel(release="6.1.0-25-amd64", command_line="root=/dev/sda2 ro quiet", boot_id="b" * 36),
        block_devices=(
            BlockDevice(
                name="nvme0n1", path="/dev/nvme0n1", kind="disk", major_minor="259:0", stable_id="nvme-eui.0025385b",
                model="SAMSUNG MZQL21T9HCJR", serial="S64GNE0R800123", firmware="GDC5902Q", transport="nvme",
                size_bytes=1_920_383_410_176, scheduler="none", schedulers=("none", "mq-deadline"),
            ),
            BlockDevice(
                name="sda", path="/dev/sda", kind="disk", major_minor="8:0", stable_id="wwn-0x5000c500",
                model="INTEL SSDSC2KB48", serial="PHYF1234", size_bytes=480_103_981_056, transport="sata",
                scheduler="mq-deadline", holders=(Holder(kind="mount", detail="/ (sda2)"),),
            ),
        ),
    )  # fmt: skip


def make_host(slug: str = "storage1", **changes: Any) -> Host:
    fields: dict[str, Any] = {
        "token_hash": hashlib.sha256(slug.encode()).hexdigest(),
        "hostname": f"{slug}.lab.example",
        "last_seen_at": timezone.now(),
        "worker_version": "0.1.0",
        "capabilities": {
            "engines": {"fio": {"version": "fio-3.33", "features": ["io_uring", "libaio", "psync", "fixedbufs"]}},
            "settings": ["scheduler"], "as_root": True, "isolation": "cgroup2",
        },
    }  # fmt: skip
    return Host.objects.create(slug=slug, **(fields | changes))


def make_inventory(host: Host) -> HostInventory:
    facts = msgspec.to_builtins(inventory())
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    content, _ = InventoryContent.objects.get_or_create(digest=digest, defaults={"facts": facts})
    return HostInventory.objects.create(host=host, content=content, taken_at=timezone.now())


def make_target(host: Host, slug: str = "scratch", **changes: Any) -> Target:
    fields: dict[str, Any] = {
        "kind": "directory", "path": f"/srv/{slug}", "stable_id": f"dir:/srv/{slug}",
        "lock_keys": [f"{host.slug}/{slug}"],
        "model": "SAMSUNG MZQL21T9HCJR", "device": "nvme0n1", "size_bytes": 900_000_000_000, "present": True,
    }  # fmt: skip
    return Target.objects.create(host=host, slug=slug, **(fields | changes))


def make_drive(host: Host, slug: str = "nvme0", **changes: Any) -> Target:
    """A block device whose content may be destroyed."""
    fields: dict[str, Any] = {
        "kind": "block", "path": "/dev/nvme0n1", "stable_id": "nvme-eui.0025385b", "serial": "S64GNE0R800123",
        "firmware": "GDC5902Q", "destroy": True, "settings_allowed": ["*"], "size_bytes": 1_920_383_410_176,
    }  # fmt: skip
    return make_target(host, slug, **(fields | changes))


def make_version(document: PlanDocument = FIRST_LOOK, slug: str = "first-look", number: int = 1) -> PlanVersion:
    plan, _ = Plan.objects.get_or_create(slug=slug, defaults={"title": document.title})
    return PlanVersion.objects.create(plan=plan, number=number, document=write(document))


def _points() -> list[tuple[str, dict[str, Any]]]:
    """The grid of FIRST_LOOK: name of the part and levels."""
    common = {"numjobs": 1, "direct": True, "sync_depth": "threads", "size": 2**30, "runtime": 3, "scheduler": "none"}
    random_part = itertools.product(("randread", "randwrite"), (4096,), (1, 32))
    sequential = itertools.product(("read", "write"), (131072,), (8,))
    grid = [("random", levels) for levels in random_part] + [("sequential", levels) for levels in sequential]
    return [
        (part, {"pattern": pattern, "block_size": block, "ioengine": engine, "iodepth": depth, **common})
        for part, (pattern, block, depth) in grid
        for engine in ("io_uring", "psync")
    ]


def make_run(
    version: PlanVersion, targets: Sequence[Target], by: User | None = None, repeats: int = 3, **changes: Any
) -> Run:
    """A run with all its trials planned."""
    points = _points()
    fields: dict[str, Any] = {"state": RunState.RUNNING, "seed": 7, "created_by": by, "started_at": timezone.now()}
    run = Run.objects.create(
        number=Run.objects.count() + 1, version=version, trial_count=len(points) * repeats * len(targets),
        **(fields | changes),
    )  # fmt: skip
    run.targets.set(targets)
    places = itertools.product(range(1, repeats + 1), targets, points)
    Trial.objects.bulk_create(
        _trial(run, index, repeat, target, part, point) for index, (repeat, target, (part, point)) in enumerate(places)
    )
    return run


def _trial(run: Run, index: int, repeat: int, target: Target, part: str, point: dict[str, Any]) -> Trial:
    key = hashlib.sha256(json.dumps(point, sort_keys=True).encode()).hexdigest()
    workload = FioWorkload(
        pattern=Pattern(point["pattern"]), block_bytes=point["block_size"], ioengine=IoEngine(point["ioengine"]),
        iodepth=point["iodepth"], size_bytes=2**30, runtime_s=3,
    )  # fmt: skip
    return Trial(
        run=run, index=index, repeat=repeat, part=part, host_id=target.host_id, target=target, point=point,
        point_key=key, workload=msgspec.to_builtins(workload), settings={"scheduler": "none"},
    )  # fmt: skip


def start_trial(trial: Trial, at: datetime | None = None) -> Attempt:
    """An attempt that is running now."""
    at = at or timezone.now()
    attempt = Attempt.objects.create(
        kind="trial", run=trial.run, trial=trial, host=trial.host, state="running", started_at=at,
        lease_until=at + timedelta(minutes=15), phase={"type": "phase", "at": 0.0, "name": "run"},
    )  # fmt: skip
    Attempt.objects.filter(pk=attempt.pk).update(created_at=at)
    _move(trial, attempt, "running", at)
    return Attempt.objects.get(pk=attempt.pk)


def _move(trial: Trial, attempt: Attempt | None, state: str, at: datetime, code: str = "", reason: str = "") -> None:
    before, trial.state = trial.state, state
    trial.reason_code, trial.reason_fields = code, told(reason)
    trial.save(update_fields=["state", "reason_code", "reason_fields"])
    move = Transition.objects.create(
        run=trial.run, trial=trial, attempt=attempt, before=before, after=state, code=code, fields=told(reason)
    )
    Transition.objects.filter(pk=move.pk).update(at=at)


def end_attempt(attempt: Attempt) -> None:
    """Make room on the host for the next one."""
    Attempt.objects.filter(pk=attempt.pk).update(state="done", ended_at=timezone.now())


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
    assert attempt.trial is not None
    assert attempt.started_at is not None
    point = attempt.trial.point
    iops, latency_ns = speed_of(point, noise)
    rows = []
    for second in range(first, first + seconds):
        now = iops * noise.uniform(0.93, 1.05)
        rows.append(Sample(
            attempt=attempt, stream=0, offset_ms=1000 * (second + 1), length_ms=1000, direction=direction_of(point),
            at=attempt.started_at + timedelta(seconds=second + 1), ios=int(now),
            bytes=int(now) * point["block_size"], p50_ns=int(latency_ns * 0.93),
            p99_ns=int(latency_ns * noise.uniform(1.7, 2.4)),
            p999_ns=int(latency_ns * noise.uniform(3, 6)) if now > 10_000 else None, latency=b"",
            utilisation_percent=noise.uniform(96, 100), queue_depth=point["iodepth"] * noise.uniform(0.9, 1),
        ))  # fmt: skip
    Sample.objects.bulk_create(rows)


def finish_trial(trial: Trial, at: datetime | None = None, seconds: int = 3, seed: int = 0) -> Result:
    """The trial ran and is done, with samples, stream, settings and result."""
    at = at or timezone.now() - timedelta(seconds=seconds + 1)
    noise = random.Random(f"{seed} {trial.index}")
    attempt = start_trial(trial, at)
    add_seconds(attempt, seconds, noise)
    stream = _stream(attempt, at, seconds)
    ended = at + timedelta(seconds=seconds + 0.3)
    SettingChange.objects.create(
        attempt=attempt, at=at, name="scheduler", device="nvme0n1", before="mq-deadline", asked="none", observed="none"
    )
    Attempt.objects.filter(pk=attempt.pk).update(state="done", ended_at=ended)
    _move(trial, attempt, "done", ended)
    Trial.objects.filter(pk=trial.pk).update(ended_at=ended)
    return _result(trial, stream, ended, seconds, noise)


def _stream(attempt: Attempt, at: datetime, seconds: int) -> StreamRun:
    facts = {"device.nvme0n1.scheduler": "none", "kernel.release": "6.1.0-25-amd64", "fio.version": "fio-3.33"}
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    configuration, _ = Configuration.objects.get_or_create(digest=digest, defaults={"facts": facts})
    return StreamRun.objects.create(
        attempt=attempt, stream=0, configuration=configuration, started_at=at, ended_at=at + timedelta(seconds=seconds),
        job_text="[global]\nioengine=io_uring\ndirect=1\n\n[sweetspot]\nrw=randread\nbs=4096\niodepth=32\nruntime=3\n",
        command=["fio", "--output-format=json+", "--status-interval=1", "-"], engine_version="fio-3.33", exit_code=0,
        stderr="fio: cpu affinity is not set\n", usr_cpu_percent=12.5, sys_cpu_percent=41.2, samples_sent=seconds,
    )  # fmt: skip


def _result(trial: Trial, stream: StreamRun, at: datetime, seconds: int, noise: random.Random) -> Result:
    iops, latency_ns = speed_of(trial.point, noise)
    return Result.objects.create(
        trial=trial, stream_run=stream, direction=direction_of(trial.point), run=trial.run, host=trial.host,
        target=trial.target, point=trial.point, point_key=trial.point_key, measured_at=at, ios=int(iops * seconds),
        bytes=int(iops * seconds) * trial.point["block_size"], runtime_ms=seconds * 1000, iops=iops,
        bytes_per_s=iops * trial.point["block_size"], latency_kind="lat", latency_min_ns=latency_ns * 0.6,
        latency_mean_ns=latency_ns, latency_max_ns=latency_ns * 40, latency_stddev_ns=latency_ns * 0.2,
        p50_ns=int(latency_ns * 0.95), p95_ns=int(latency_ns * 1.5), p99_ns=int(latency_ns * 2.1),
        p999_ns=int(latency_ns * 4.2) if iops * seconds > 10_000 else None, latency=b"",
    )  # fmt: skip


def fail_trial(trial: Trial, code: str = "engine_missing", reason: str = "fio 3.33 on storage1 has no psync.") -> None:
    now = timezone.now()
    attempt = start_trial(trial, now)
    Attempt.objects.filter(pk=attempt.pk).update(
        state="failed", ended_at=now, outcome_code=code, outcome_fields=told(reason)
    )
    _move(trial, attempt, "failed", now, code, reason)
    Trial.objects.filter(pk=trial.pk).update(ended_at=now)


def finish_run(run: Run) -> None:
    """Every trial that is still planned is done, one after the other; then the run is."""
    began = run.started_at or timezone.now()
    trials = run.trials.filter(state="planned").select_related("run", "host", "target").order_by("index")
    for place, trial in enumerate(trials):
        finish_trial(trial, began + timedelta(seconds=5 * place), seed=run.number)
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE, ended_at=timezone.now())
    run.refresh_from_db()
