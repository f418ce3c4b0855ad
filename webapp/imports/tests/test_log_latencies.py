"""Histogram and submission logs of fio, with the JSON+ of the same test."""

import json
from pathlib import Path
from typing import Any

import pytest

from webapp.imports.files import read_files
from webapp.imports.formats import fio_json
from webapp.imports.formats.tests.examples import DATA
from webapp.imports.reading.contents import read
from webapp.imports.reading.limits import Read, Refused
from webapp.imports.reading.order import in_order
from webapp.imports.selectors import results_of
from webapp.imports.services import add_found, add_paths, begin_import
from webapp.imports.storing import INCOMPLETE, Store
from webapp.results.models import Import, ImportedFile, Result, known
from webapp.results.reading.rows import read_rows
from worker.contract.items import Direction
from worker.contract.packing import Histogram, unpack

pytestmark = pytest.mark.django_db
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


def add(imported: Import, found: Texts) -> dict[str, ImportedFile]:
    """All files of the import, by path."""
    add_found(imported, [Read(*each) for each in sorted(found.items(), key=lambda each: in_order(each[0]))])
    return {file.path: file for file in imported.files.all()}


def files(found: Texts) -> dict[str, ImportedFile]:
    Import.objects.all().delete()
    return add(begin_import(title="Logs", pattern="", given={}, by=None), found)


def measured(file: ImportedFile) -> dict[Direction | None, Result]:
    return {Direction(one.direction): one for one in Result.objects.filter(origin__file=file).select_related("origin")}


def histogram_of(result: Result) -> Histogram:
    return unpack(result.latency)


def notes_of(result: Result) -> list[str]:
    return list(known(result.origin).notes)


def test_the_histogram_of_the_logs_is_that_of_the_json() -> None:
    """fio logs no last interval: each bin of the logs has at most the I/Os of the JSON, and all are its bins."""
    found = texts("fine")
    stated = {one.direction: one.latency.histogram for one in fio_json.parse(found["mixed.json"])}
    joined = measured(files(found | {"mixed.json": without_bins(found["mixed.json"])})["mixed.json"])
    assert joined.keys() == {Direction.READ, Direction.WRITE}
    for direction, one in joined.items():
        all_bins = dict(zip(stated[direction].latency_ns, stated[direction].counts, strict=True))
        logged = histogram_of(one)
        assert 0.8 * (one.ios or 0) < logged.total < (one.ios or 0)
        for latency, count in zip(logged.latency_ns, logged.counts, strict=True):
            assert 0 < count <= all_bins[latency]
        for percent in (50.0, 95.0):
            assert logged.percentile(percent) == pytest.approx(getattr(one, f"p{percent:g}_ns"), rel=0.1)
    assert "12,006 of 14,000 I/Os (read), 6,004 of 7,000 I/Os (write)" in notes_of(joined[Direction.READ])[-1]


def test_joined_bins_hold_the_bins_of_the_json() -> None:
    found = texts("coarse")
    stated = {one.direction: one.latency.histogram for one in fio_json.parse(found["mixed.json"])}
    joined = measured(files(found | {"mixed.json": without_bins(found["mixed.json"])})["mixed.json"])
    for direction, one in joined.items():
        logged = histogram_of(one)
        assert "up to 3.1 % off" in notes_of(one)[-1]
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
    assert "Read, but not used: the test already has a mean submission latency" in notes["mixed_slat.1.log"]


def test_a_histogram_of_the_json_counts_before_that_of_the_logs() -> None:
    found = texts("fine")
    outcome = files(found)
    assert "Read, but not used: the test already has a latency histogram." in outcome["mixed_clat_hist.1.log"].notes[0]
    stated = fio_json.parse(found["mixed.json"])
    stored = measured(outcome["mixed.json"])
    assert {way: histogram_of(one) for way, one in stored.items()} == {
        one.direction: one.latency.histogram for one in stated
    }
    assert {way: one.p99_ns for way, one in stored.items()} == {
        one.direction: one.latency.percentiles[99.0] for one in stated
    }


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
    assert all(not histogram_of(one).counts for one in measured(outcome["mixed.json"]).values())


def test_logs_alone_have_percentiles_and_submission_latency() -> None:
    found = texts("fine")
    document = {one.direction: one for one in fio_json.parse(found.pop("mixed.json"))}
    (file,) = [one for one in files(found).values() if one.results]
    for direction, one in measured(file).items():
        stated = document[direction]
        assert one.latency_kind == "clat"
        assert one.latency_mean_ns == pytest.approx(stated.latency.mean_ns, rel=0.2)
        assert one.metrics["slat_mean_ns"] == pytest.approx(stated.metrics["slat_mean_ns"], rel=0.2)
        assert one.iops == pytest.approx(stated.iops, rel=0.02)


def test_a_histogram_alone_is_a_test_and_a_damaged_one_is_left_out() -> None:
    found = {name: text for name, text in texts("fine").items() if "hist" in name or "iops" in name}
    histogram = found["mixed_clat_hist.1.log"]
    (alone,) = files({"mixed_clat_hist.1.log": histogram}).values()
    assert {histogram_of(one).total for one in measured(alone).values()} == {6003, 3002}
    outcome = files(found | {"mixed_clat_hist.1.log": histogram[:-3000]})
    damaged = outcome["mixed_clat_hist.1.log"]
    assert "differ in length" in damaged.reason
    assert outcome["mixed_clat_hist.2.log"].reason == damaged.reason  # the histogram is of both jobs together
    assert outcome["mixed_iops.1.log"].reason == ""
    assert all(not histogram_of(one).counts for one in measured(outcome["mixed_iops.1.log"]).values())


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


def test_logs_of_a_later_request_add_to_the_stored_test() -> None:
    """Only what the JSON does not state: the histograms, p99 of the reads, and the submission latency."""
    found = texts("fine")
    document = json.loads(without_bins(found.pop("mixed.json")))
    stated = {way: document["jobs"][0][way]["clat_ns"]["percentile"]["50.000000"] for way in ("read", "write")}
    document["jobs"][0]["read"]["clat_ns"]["percentile"] = {"50.000000": stated["read"]}
    submission = {way: document["jobs"][0][way].pop("slat_ns")["mean"] for way in ("read", "write")}
    imported = begin_import(title="Logs", pattern="", given={}, by=None)
    first = measured(add(imported, {"mixed.json": json.dumps(document)})["mixed.json"])
    assert (first[Direction.READ].p50_ns, first[Direction.READ].p99_ns) == (stated["read"], None)
    assert not histogram_of(first[Direction.READ]).counts
    outcome = add(imported, {name: text for name, text in found.items() if "hist" in name})
    outcome = add(imported, {name: text for name, text in found.items() if "hist" not in name})
    assert {file.reason for file in outcome.values()} == {""}
    joined = measured(outcome["mixed.json"])
    for way, one in joined.items():
        assert one.p50_ns == stated[str(way)]
        assert one.metrics["slat_mean_ns"] == pytest.approx(submission[str(way)], rel=0.2)
        assert one.iops == first[way].iops
        assert one.latency_mean_ns == first[way].latency_mean_ns
    assert joined[Direction.READ].p99_ns == histogram_of(joined[Direction.READ]).percentile(99)
    assert joined[Direction.WRITE].p99_ns == first[Direction.WRITE].p99_ns
    assert "12,006 of 14,000 I/Os (read), 6,004 of 7,000 I/Os (write)" in notes_of(joined[Direction.READ])[-1]
    assert known(joined[Direction.READ].origin).series
    assert "Of the test in mixed.json. Latency histogram" in outcome["mixed_clat_hist.1.log"].notes[0]
    assert "Mean of the submission latency: the metric slat_mean_ns." in outcome["mixed_slat.2.log"].notes[0]
    again = add(imported, {"mixed_clat_hist.3.log": found["mixed_clat_hist.1.log"]})["mixed_clat_hist.3.log"]
    assert again.notes == ["Of the test in mixed.json. Read, but not used: the test already has a latency histogram."]
    assert histogram_of(measured(outcome["mixed.json"])[Direction.READ]).total == 12_006


def test_histogram_logs_in_a_large_folder_join_their_tests(tmp_path: Path) -> None:
    """Tests and logs are far more than 2,000 files apart."""
    found = texts("fine")
    found["mixed.json"] = without_bins(found["mixed.json"])
    folder = tmp_path / "D"
    folder.mkdir()
    for number in range(2):
        for name, text in found.items():
            text = text.replace('"timestamp" :', '"was" :').replace('"timestamp": 1', f'"timestamp": {number + 1}')
            (folder / name.replace("mixed", f"{'az'[number]}{number}")).write_text(text)
    for number in range(2500):
        (folder / f"note-{number}.txt").write_text(f"note {number}")
    imported = begin_import(title="Logs", pattern="", given={}, by=None)
    add_paths(imported, tmp_path)
    assert not imported.files.exclude(format="").exclude(reason="").exists()
    results = Result.objects.filter(origin__imported=imported)
    assert sorted(histogram_of(one).total for one in results) == [6004, 6004, 12_006, 12_006]
    assert imported.origins.exclude(series=None).count() == imported.origins.count() == 2


def test_a_histogram_log_that_is_left_out_leaves_the_series() -> None:
    found = texts("fine")
    found["mixed.json"] = without_bins(found["mixed.json"])
    del found["mixed_clat_hist.2.log"]
    imported = begin_import(title="Logs", pattern="", given={}, by=None)
    reads = [Read(*each) for each in sorted(found.items(), key=lambda each: in_order(each[0]))]
    add_found(imported, [*reads, Refused("mixed_clat_hist.2.log", "The file is binary, not text.")])
    reasons = dict(imported.files.exclude(reason="").values_list("path", "reason"))
    assert reasons.pop("mixed_clat_hist.2.log") == "The file is binary, not text."
    reason = "Another log of the same test is left out, so its clat_hist logs are incomplete."
    assert reasons == {"mixed_clat_hist.1.log": reason}
    assert imported.origins.get().series
    assert not any(histogram_of(one).counts for one in Result.objects.all())


def test_logs_in_several_requests_are_left_out_and_their_histogram_stays() -> None:
    found = texts("fine")
    found["mixed.json"] = without_bins(found["mixed.json"])
    second = {name: found.pop(name) for name in list(found) if name.endswith(".2.log") and "hist" not in name}
    imported = begin_import(title="Logs", pattern="", given={}, by=None)
    add(imported, found)
    outcome = add(imported, second)
    assert imported.origins.get().series is None
    for log in ("mixed_bw.1.log", "mixed_bw.2.log"):
        assert "logs of some jobs are missing or came in another request" in outcome[log].reason
    assert "12,006 of 14,000 I/Os" in outcome["mixed_clat_hist.1.log"].notes[0]
    assert {histogram_of(one).total for one in Result.objects.all()} == {12_006, 6004}


def test_all_logs_of_a_test_of_their_own_in_several_requests_are_left_out() -> None:
    found = texts("fine")
    del found["mixed.json"]
    imported = begin_import(title="Logs", pattern="", given={}, by=None)
    for part in "1", "2", "2":
        outcome = add(imported, {name: text for name, text in found.items() if f".{part}.log" in name})
    assert {(file.reason, file.results, len(file.notes)) for file in outcome.values()} == {(INCOMPLETE, 0, 0)}
    assert Result.objects.count() == 0


def test_several_late_parts_of_a_trial_in_one_request_are_left_out() -> None:
    """In batches of their own: the first late part has removed the test already."""
    imported = begin_import(title="Logs", pattern="", given={}, by=None)
    store = Store(imported)
    for job in range(1, 4):
        store.add(list(read_files([Read(f"t_iops.{job}.log", "1000, 500, 0, 0\n")], "", {})))
    assert set(imported.files.values_list("reason", flat=True)) == {INCOMPLETE}
    assert (store.stored.results, store.stored.refused) == (0, {INCOMPLETE: 3})
