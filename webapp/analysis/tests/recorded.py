"""Runs with a recording."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from django.utils import timezone

from webapp.results.models import Result, Sample, StreamRun, known
from webapp.runs.models import Run
from webapp.tests.factories.results import START, Lab
from worker.contract.steadiness import steadiness

BURST = [4000.0] * 12 + [1000.0] * 48


def record(result: Result, iops: Sequence[float], *, used: float = 100, cpu: float | None = None) -> None:
    """A sample each second, as the ingest stores them, with the verdict on the series."""
    stream = known(result.stream_run)
    noisy = np.random.default_rng(result.pk).normal(1, 0.02, len(iops)) * np.array(iops)
    counts = [int(rate) for rate in noisy]
    sensors = [] if cpu is None else [["cpu_user", "cpu0"], ["cpu_system", "cpu0"], ["cpu_irq", "cpu0"]]
    Sample.objects.bulk_create(
        Sample(
            attempt=stream.attempt, stream=0, offset_ms=1000 * second, length_ms=1000, direction="read",
            at=START + timedelta(seconds=second), ios=count, bytes=4096 * count, latency=b"",
            utilisation_percent=used, queue_depth=1, telemetry=None if cpu is None else [cpu, 0.0, 0.0],
        )
        for second, count in enumerate(counts, start=1)
    )  # fmt: skip
    device = {"device": "sda", "utilisation_percent": used, "queue_depth": 1}
    StreamRun.objects.filter(pk=stream.pk).update(sensors=sensors, device=device)
    judged = steadiness((1000 * second, 1000, float(count)) for second, count in enumerate(counts, start=1))
    Result.objects.filter(pk=result.pk).update(
        steadiness=judged.verdict, steadiness_numbers=judged.numbers, runtime_ms=1000 * len(iops)
    )


def ended(lab: Lab) -> Run:
    Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    lab.run.refresh_from_db()
    return lab.run
