"""All JSON files of a large collection of real results, if SWEETSPOT_FIO_RESULTS names its folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from webapp.imports import labels
from webapp.imports.files import plausible
from webapp.imports.formats import fio_json
from webapp.imports.formats.fio_log import Log, log_name, series
from webapp.imports.formats.tests.examples import CORPUS
from webapp.imports.measurement import Measurement
from worker.contract.items import Direction

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="SWEETSPOT_FIO_RESULTS names no collection of real results")


def test_every_file_agrees_with_its_own_counts() -> None:
    files = sorted(CORPUS.rglob("*.json"))
    assert len(files) >= 204
    pattern = labels.suggest(str(path.relative_to(CORPUS)) for path in files)
    assert pattern == "{host}/{controller}/{drive}/{rw}-{iodepth}-{numjobs}.json"
    for path in files:
        (measured,) = fio_json.parse(path.read_text())
        assert plausible(measured, timezone.now()) == measured
        _agrees(measured, json.loads(path.read_text())["jobs"][0], path)
        found = labels.match(pattern, str(path)) or {}
        labelled = labels.apply(found, measured)
        assert labelled.labels.keys() == {"host", "controller", "drive"}
        assert labelled.measurement.notes == ()  # the path says what the file says


def _agrees(measured: Measurement, job: dict[str, Any], path: Path) -> None:
    direction = "write" if "write" in path.name else "read"
    flow = job[direction]
    assert measured.direction is Direction(direction)
    assert measured.iops == pytest.approx(flow["total_ios"] * 1000 / flow["runtime"], rel=1e-6)
    assert measured.bytes_per_s == pytest.approx(flow["io_bytes"] * 1000 / flow["runtime"], rel=1e-6)
    assert measured.factors["block_size"] == 4096
    assert measured.bytes_per_s == pytest.approx((measured.iops or 0) * 4096, rel=1e-6)
    assert measured.latency.mean_ns == flow["clat_ns"]["mean"]
    littles_law = measured.metrics["lat_mean_ns"] / 1e9 * (measured.iops or 0)
    outstanding = int(job["job options"]["iodepth"]) * int(job["job options"]["numjobs"])
    assert littles_law == pytest.approx(outstanding, rel=0.12)


def test_logs_sum_to_the_results() -> None:
    trials: dict[str, list[Log]] = {}
    for path in CORPUS.rglob("*.log"):
        name = log_name(str(path))
        assert name is not None
        trials.setdefault(name.trial, []).append(Log(name.kind, name.job, path.read_text()))
    assert len(trials) == 8
    for trial, logs in trials.items():
        file = Path(trial.replace("iodepth-", "").replace("numjobs-", "") + ".json")
        (measured,) = fio_json.parse(file.read_text())
        ((direction, points),) = series(logs).items()
        assert direction is measured.direction
        seconds = sum(point.length_ms for point in points) / 1000
        for of_point, whole in (("iops", measured.iops), ("bytes_per_s", measured.bytes_per_s)):
            total = sum(getattr(point, of_point) * point.length_ms / 1000 for point in points)
            assert total / seconds == pytest.approx(whole, rel=0.01)
