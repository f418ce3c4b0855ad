"""Histogram and submission logs of fio, with the JSON+ of the same test."""

import json
from pathlib import Path
from typing import Any

import pytest

from webapp.imports.files import FileRead, read_files
from webapp.imports.formats import fio_json
from webapp.imports.formats.tests.examples import DATA
from webapp.imports.measurement import Measurement
from webapp.imports.reading import Read, read
from webapp.imports.selectors import results_of
from webapp.imports.services import add_found, begin_import
from webapp.results.reading.rows import read_rows
from worker.contract.items import Direction

ARCHIVE = DATA / "fio-log" / "histograms-3.33.tar.xz"
Texts = dict[str, str]


def texts(folder: str) -> Texts:
    found = {
        Path(one.path).name: one.text for one in read(ARCHIVE) if isinstance(one, Read) and f"{folder}/" in one.path
    }
    assert len(found) == 13
    return found


def without_bins(document: str) -> str:
    """As `--output-format=json` writes it."""
    found: dict[str, Any] = json.loads(document)
    for job in found["jobs"]:
        for way in ("read", "write"):
            for kind in ("lat_ns", "clat_ns", "slat_ns"):
                job[way][kind].pop("bins", None)
    return json.dumps(found)


def files(found: Texts) -> dict[str, FileRead]:
    return {one.path: one for one in read_files([Read(*each) for each in sorted(found.items())], "", {})}


def measured(file: FileRead) -> dict[Direction | None, Measurement]:
    return {one.direction: one for test in file.tests for one in test.measured}


def test_the_histogram_of_the_logs_is_that_of_the_json() -> None:
    """fio logs no last interval: each bin of the logs has at most the I/Os of the JSON, and all are its bins."""
    found = texts("fine")
    stated = {one.direction: one.latency.histogram for one in fio_json.parse(found["mixed.json"])}
    joined = measured(files(found | {"mixed.json": without_bins(found["mixed.json"])})["mixed.json"])
    assert joined.keys() == {Direction.READ, Direction.WRITE}
    for direction, one in joined.items():
        all_bins = dict(zip(stated[direction].latency_ns, stated[direction].counts, strict=True))
        logged = one.latency.histogram
        assert 0.8 * (one.ios or 0) < logged.total < (one.ios or 0)
        for latency, count in zip(logged.latency_ns, logged.counts, strict=True):
            assert 0 < count <= all_bins[latency]
        for percent in (50.0, 95.0):
            assert logged.percentile(percent) == pytest.approx(one.latency.percentiles[percent], rel=0.1)
    assert "12,006 of 14,000 I/Os (read), 6,004 of 7,000 I/Os (write)" in joined[Direction.READ].notes[-1]


def test_joined_bins_hold_the_bins_of_the_json() -> None:
    found = texts("coarse")
    stated = {one.direction: one.latency.histogram for one in fio_json.parse(found["mixed.json"])}
    joined = measured(files(found | {"mixed.json": without_bins(found["mixed.json"])})["mixed.json"])
    for direction, one in joined.items():
        logged = one.latency.histogram
        assert "up to 3.1 % off" in one.notes[-1]
        for latency, count in zip(logged.latency_ns, logged.counts, strict=True):
            near = [
                n
                for ns, n in zip(stated[direction].latency_ns, stated[direction].counts, strict=True)
                if abs(ns - latency) <= 0.032 * latency
            ]
            assert count <= sum(near)


def test_each_log_says_what_it_became() -> None:
    found = texts("fine")
    outcome = files(found | {"mixed.json": without_bins(found["mixed.json"])})
    assert {one.reason for one in outcome.values()} == {""}
    notes = {name: " ".join(one.notes) for name, one in outcome.items()}
    for used in ("bw", "iops", "lat"):
        assert notes[f"mixed_{used}.2.log"] == "Part of the time series of mixed.json."
    assert notes["mixed_clat.1.log"] == ("Read, but not used: the time series of mixed.json has the total latency.")
    assert "Latency histogram from logs" in notes["mixed_clat_hist.2.log"]
    assert "Read, but not used: the test states its own mean submission latency" in notes["mixed_slat.1.log"]


def test_a_histogram_of_the_json_counts_before_that_of_the_logs() -> None:
    found = texts("fine")
    outcome = files(found)
    assert "Read, but not used: the test states its own latency histogram." in outcome["mixed_clat_hist.1.log"].notes[0]
    stated = fio_json.parse(found["mixed.json"])
    assert [one.latency for one in measured(outcome["mixed.json"]).values()] == [one.latency for one in stated]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda job: job.update(total_ios=job["total_ios"] // 2), "more I/Os than the test"),
        (lambda job: job.update(total_ios=job["total_ios"] * 3), "only 29 % of the test's I/Os"),
        (lambda job: job["clat_ns"].update(percentile={}), "does not state completion latency"),
    ],
)
def test_a_histogram_of_other_ios_is_not_used(change: Any, reason: str) -> None:
    found = texts("fine")
    document = json.loads(without_bins(found["mixed.json"]))
    for way in ("read", "write"):
        document["jobs"][0][way]["lat_ns"]["percentile"] = {"50.000000": 50_000}
        if "completion" not in reason:
            del document["jobs"][0][way]["lat_ns"]["percentile"]
        change(document["jobs"][0][way])
    outcome = files(found | {"mixed.json": json.dumps(document)})
    assert "Read, but not used: " in outcome["mixed_clat_hist.1.log"].notes[0]
    assert reason in outcome["mixed_clat_hist.1.log"].notes[0]
    assert all(not one.latency.histogram.counts for one in measured(outcome["mixed.json"]).values())


def test_logs_alone_have_percentiles_and_submission_latency() -> None:
    found = texts("fine")
    document = {one.direction: one for one in fio_json.parse(found.pop("mixed.json"))}
    (file,) = [one for one in files(found).values() if one.tests]
    for direction, one in measured(file).items():
        stated = document[direction]
        assert one.latency.kind == "clat"
        assert one.latency.mean_ns == pytest.approx(stated.latency.mean_ns, rel=0.2)
        assert one.metrics["slat_mean_ns"] == pytest.approx(stated.metrics["slat_mean_ns"], rel=0.2)
        assert one.iops == pytest.approx(stated.iops, rel=0.02)


def test_a_histogram_alone_is_a_test_and_a_damaged_one_is_left_out() -> None:
    found = {name: text for name, text in texts("fine").items() if "hist" in name or "iops" in name}
    histogram = found["mixed_clat_hist.1.log"]
    (alone,) = files({"mixed_clat_hist.1.log": histogram}).values()
    assert {one.latency.histogram.total for one in measured(alone).values()} == {6003, 3002}
    outcome = files(found | {"mixed_clat_hist.1.log": histogram[:-3000]})
    damaged = outcome["mixed_clat_hist.1.log"]
    assert "differ in length" in damaged.reason
    assert outcome["mixed_clat_hist.2.log"].reason == damaged.reason  # the histogram is of both jobs together
    assert outcome["mixed_iops.1.log"].reason == ""
    assert all(not one.latency.histogram.counts for one in measured(outcome["mixed_iops.1.log"]).values())


@pytest.mark.django_db
def test_percentiles_of_the_histogram_are_stored() -> None:
    found = texts("fine")
    del found["mixed.json"]
    imported = begin_import(title="Logs", pattern="", given={}, by=None)
    add_found(imported, [Read(f"a/{name}", text) for name, text in sorted(found.items())])
    stated = {one.direction: one.latency for one in fio_json.parse(texts("fine")["mixed.json"])}
    rows = read_rows(results_of(imported))
    assert {row.direction for row in rows} == {"read", "write"}
    for row in rows:
        percentiles = stated[Direction(row.direction)].percentiles
        assert row.p50_ns == pytest.approx(percentiles[50.0], rel=0.1)
        assert row.p99_ns == pytest.approx(percentiles[99.0], rel=0.5)
    assert {row.p999_ns is None for row in rows} == {row.direction == "write" for row in rows}  # 10,000 I/Os are needed
