"""Finished trials with given numbers, as ingest leaves them, for tests of what reads results."""

import hashlib
import json
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from webapp.hosts.models import Host, Target
from webapp.plans.document import Part, PlanDocument, write
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.points import applicable, point_key, settings_of, with_defaults, workload_of
from webapp.plans.values import Value
from webapp.results.models import Configuration, Result, Sample, StreamRun
from webapp.runs.models import Attempt, AttemptState, Run, RunState, Trial, TrialState

START = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
FACTS = {"kernel.release": "6.1.0", "device.scheduler": "none"}


def make_host(slug: str = "a") -> Host:
    token_hash = hashlib.sha256(slug.encode()).hexdigest()
    return Host.objects.create(slug=slug, hostname=f"{slug}.example", token_hash=token_hash, last_seen_at=START)


def make_target(host: Host, slug: str = "scratch", kind: str = "directory", **given: object) -> Target:
    common: dict[str, object] = {
        "path": f"/srv/{slug}" if kind == "directory" else f"/dev/{slug}",
        "stable_id": f"x:{slug}",
        "serial": "SN1" if kind == "block" else "",
        "lock_keys": [f"{host.slug}/{slug}"],
        "size_bytes": 10 * 2**30,
        "present": True,
        "destroy": True,
        "settings_allowed": ["*"],
    }
    return Target.objects.create(host=host, slug=slug, kind=kind, **(common | given))


def make_version(slug: str = "plan", document: PlanDocument | None = None) -> PlanVersion:
    given = document or PlanDocument(title=slug.title(), parts=(Part(name="a", factors={"pattern": "randread"}),))
    plan, _ = Plan.objects.get_or_create(slug=slug, defaults={"title": given.title})
    return PlanVersion.objects.create(plan=plan, number=plan.versions.count() + 1, document=write(given))


def make_point(**levels: Value) -> dict[str, Value]:
    grid = with_defaults({"pattern": ("randread",), "size": (2**20,)}, drop_caches=False)
    plain = {name: values[0] for name, values in grid.items()}
    return applicable(plain | levels)


@dataclass
class Lab:
    """Trials of one run at one target, one after another."""

    target: Target
    run: Run = field(init=False)
    version: PlanVersion | None = None
    number: int = 1

    def __post_init__(self) -> None:
        version = self.version or make_version(f"plan-{self.number}")
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
        point = make_point(**levels)
        streams = [self._stream(at, point, repeat, state, facts, fio) for repeat in range(1, len(values) + 1)]
        return [_result(stream, value, direction, invalid) for stream, value in zip(streams, values, strict=True)]

    def _stream(
        self, at: Target, point: dict[str, Value], repeat: int, state: str, facts: dict[str, str] | None, fio: str
    ) -> StreamRun:
        index = self.run.trials.count()
        trial = Trial.objects.create(
            run=self.run, index=index, repeat=repeat, part="a", host=at.host, target=at, point=point,
            point_key=point_key(point), workload=_plain(workload_of(point, seed=repeat)), settings=settings_of(point),
            state=state, reason_code="fio_error" if state == TrialState.FAILED else "",
        )  # fmt: skip
        attempt = Attempt.objects.create(
            kind="trial", run=self.run, trial=trial, host=at.host, state=AttemptState.DONE, lease_until=START
        )
        stream = StreamRun.objects.create(
            attempt=attempt, stream=0, job_text="[sweetspot]\nrw=randread\n", command=["fio", "-"], engine_version=fio,
            configuration=_configuration(FACTS if facts is None else facts),
            started_at=START + timedelta(seconds=index),
        )  # fmt: skip
        stream.attachments.create(
            name="fio.json", media_type="application/json", compressed=zlib.compress(b'{"fio version": "fio-3.33"}')
        )
        return stream


def _plain(workload: object) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(workload)
    return plain


def _configuration(facts: dict[str, str]) -> Configuration:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return Configuration.objects.get_or_create(digest=digest, defaults={"facts": facts})[0]


def _result(stream: StreamRun, iops: float, direction: str, invalid: bool) -> Result:
    trial = stream.attempt.trial
    assert trial is not None
    return Result.objects.create(
        trial=trial, stream_run=stream, direction=direction, run=trial.run, host=trial.host, target=trial.target,
        point=trial.point, point_key=trial.point_key, measured_at=stream.started_at, ios=int(iops * 3),
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
