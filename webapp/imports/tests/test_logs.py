"""Logs of fio: which test they belong to, in any order, in large folders and in several requests."""

import io
import json
import random
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from webapp.imports.formats.tests.examples import DATA
from webapp.imports.reading.limits import Limits, Read, Refused
from webapp.imports.selectors import refused_by_reason
from webapp.imports.services import add_found, add_paths, begin_import, end_import, undo_import
from webapp.imports.storing import INCOMPLETE, Stored
from webapp.results.models import Import, ImportedFile, Origin, Result
from webapp.results.selectors import series_of

pytestmark = pytest.mark.django_db
FIO = json.loads((DATA / "fio-json" / "3.33-group.json").read_text())
ROWS = "1000, 500, 1, 0\n2000, 700, 1, 0\n"
JOBS = 4


def begun() -> Import:
    return begin_import(title="Old results", pattern="", given={}, by=None)


def a_test(depth: int, version: str = "fio-3.33", **changes: object) -> str:
    """A test of its own for each depth, with the rates of `logs_of`."""
    options = {"rw": "randwrite", "iodepth": str(depth), "numjobs": str(JOBS), "bs": "4k"}
    mean = 600 + depth
    latency_ns = mean * (1000 if version.startswith("fio-2") else 1)
    latency = {"clat_ns": {"mean": latency_ns, "max": latency_ns}}
    rates = {"iops": JOBS * mean, "bw_bytes": JOBS * mean * 1024, "runtime": 2000, **latency}
    job = {**FIO["jobs"][0], "job options": options, "read": {}, "write": FIO["jobs"][0]["write"] | rates | changes}
    return json.dumps({**FIO, "fio version": version, "timestamp": 1_600_000_000 + depth, "jobs": [job]})


def logs_of(depth: int) -> dict[str, str]:
    kinds = ("bw", "iops", "clat")
    name = f"randwrite-iodepth-{depth}-numjobs-{JOBS}"
    rows = f"1000, {500 + depth}, 1, 0\n2000, {700 + depth}, 1, 0\n"
    return {f"{name}_{kind}.{job}.log": rows for kind in kinds for job in range(1, JOBS + 1)}


def a_folder(tests: int, folder: str = "D") -> dict[str, str]:
    """Of fio-plot's bench-fio: the names of the logs begin otherwise than those of the tests."""
    found = {f"{folder}/randwrite-{depth}-{JOBS}.json": a_test(depth) for depth in range(1, tests + 1)}
    for depth in range(1, tests + 1):
        found |= {f"{folder}/{name}": text for name, text in logs_of(depth).items()}
    return found


def add(imported: Import, files: dict[str, str]) -> Stored:
    return add_found(imported, [Read(path, text) for path, text in files.items()])


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packed(path: Path, files: Iterable[tuple[str, str]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def check_series(imported: Import, tests: int) -> None:
    """Each test has the sum of its jobs, and there are no others."""
    assert refused_by_reason(imported) == {}
    origins = Origin.objects.filter(imported=imported)
    assert {origin.file.format for origin in origins.select_related("file")} == {"fio-json"}
    assert len(origins) == tests
    for origin in origins:
        depth = origin.results.get().point["iodepth"]
        (points,) = series_of(origin).values()
        assert [point["iops"] for point in points] == [JOBS * (500 + depth), JOBS * (700 + depth)]
        assert points[0]["latency_mean_ns"] == 500 + depth


def test_all_logs_of_a_large_folder_join_their_tests(tmp_path: Path) -> None:
    tests = 98
    files = a_folder(tests) | {f"D/more/{n}.txt": f"note {n}" for n in range(10)}
    files |= {f"D/readme-{n}.md": f"note {n}" for n in range(2500)}
    imported = begun()
    add_paths(imported, written(tmp_path, files))
    imported.files.filter(format="").delete()
    check_series(imported, tests)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_files_in_a_tar_does_not_matter(tmp_path: Path, seed: int) -> None:
    files = {**a_folder(12), **a_folder(12, "E")}
    for path in [path for path in files if path.startswith("E/") and path.endswith(".json")]:
        files[path] = files[path].replace("1600000", "1700000")
    shuffled = random.Random(seed).sample(sorted(files.items()), len(files))
    imported = begun()
    add_paths(imported, packed(tmp_path / "a.tar.gz", shuffled))
    check_series(imported, 24)


def test_a_file_of_a_subfolder_between_two_logs_of_a_tar_splits_no_trial(tmp_path: Path) -> None:
    files = [("D/t_bw.1.log", ROWS), ("D/sub/x", "x"), ("D/t_bw.2.log", ROWS)]
    imported = begun()
    add_paths(imported, packed(tmp_path / "a.tar", files))
    result = Result.objects.get()
    assert result.bytes_per_s == pytest.approx(2 * 600 * 1024)


def test_logs_given_one_by_one_join_their_test(tmp_path: Path) -> None:
    folder = written(tmp_path, a_folder(3))
    imported = begun()
    add_paths(imported, *sorted((folder / "D").iterdir(), reverse=True))
    check_series(imported, 3)


def test_logs_of_a_later_request_join_the_tests_of_earlier_ones() -> None:
    files = a_folder(5)
    imported = begun()
    add(imported, {path: text for path, text in files.items() if path.endswith(".json")})
    for depth in range(1, 6):
        add(imported, {path: text for path, text in files.items() if f"iodepth-{depth}-" in path})
    check_series(imported, 5)
    assert end_import(imported, by=None).results_made == 5


def test_logs_join_the_tests_of_their_own_request_first() -> None:
    """Two folders that were sent one after another without their names."""
    imported = begun()
    for start in (0, 10):
        test = a_test(1).replace("1600000", f"16000{start:02}")
        add(imported, {"randwrite-1-4.json": test, **logs_of(1)})
    assert Origin.objects.exclude(series=None).count() == Origin.objects.count() == 2


@pytest.mark.parametrize("with_test", [True, False])
def test_a_trial_whose_logs_come_in_several_requests_gets_no_series(*, with_test: bool) -> None:
    """The sum over its jobs would be too low."""
    imported = begun()
    add(imported, {"D/randwrite-1-4.json": a_test(1)} if with_test else {"D/table.csv": "direction,iops\nread,1\n"})
    for path, text in logs_of(1).items():
        add(imported, {f"D/{path}": text})
    assert Origin.objects.exclude(series=None).count() == 0
    assert Result.objects.count() == imported.origins.count() == 1
    refused = refused_by_reason(imported)
    assert (INCOMPLETE in refused, sum(refused.values())) == (True, 11 if with_test else 12)
    ended = end_import(imported, by=None)
    assert (ended.results_made, ended.files_read, ended.files_refused) == (1, 13, 11 if with_test else 12)
    assert (INCOMPLETE in imported.origins.get().notes) == with_test


def test_late_logs_do_not_remove_a_series_with_all_rates() -> None:
    imported = begun()
    logs = logs_of(1)
    rates = {f"D/{name}": text for name, text in logs.items() if "clat" not in name}
    late = {f"D/{name}": text for name, text in logs.items() if "clat" in name}
    add(imported, {TEST: a_test(1), **rates})
    add(imported, late)
    (points,) = series_of(imported.origins.get()).values()
    assert [point["iops"] for point in points] == [JOBS * 501, JOBS * 701]
    (reason,) = refused_by_reason(imported)
    assert reason.startswith("The test of these logs has a time series already")


def test_a_trial_with_a_log_that_is_left_out_gets_no_series() -> None:
    for lost in (Refused("D/t_bw.2.log", "The file is binary, not text."), Read("D/t_bw.2.log", "damaged")):
        imported = begun()
        add_found(imported, [Read("D/t_bw.1.log", ROWS), lost, Read("D/t_iops.1.log", ROWS)])
        assert Result.objects.count() == 0
        reason = "Another log of the same test is left out, so the logs of this test are incomplete."
        assert refused_by_reason(imported)[reason] == 2
        undo_import(imported, by=None)


def test_an_empty_log_of_an_idle_job_changes_nothing() -> None:
    add(begun(), {"D/t_iops.1.log": ROWS, "D/t_iops.2.log": "", "D/t_iops.3.log": ROWS})
    assert Result.objects.get().iops == pytest.approx(1200)


def test_an_empty_log_says_why_it_is_empty() -> None:
    """psync has no submission latency, so its slat log is empty."""
    imported = begun()
    add(imported, {"D/randwrite-1-4.json": a_test(1), "D/randwrite-iodepth-1-numjobs-4_slat.1.log": ""})
    assert list(refused_by_reason(imported).values()) == [1]
    empty = imported.files.get(path__endswith="_slat.1.log")
    assert (empty.format, empty.code) == ("fio-log", "import_refused")
    assert "synchronous" in empty.reason


def test_a_trial_that_the_limit_of_files_cuts_gets_no_series(tmp_path: Path) -> None:
    files = {"D/randwrite-1-4.json": a_test(1), **{f"D/{path}": text for path, text in logs_of(1).items()}}
    for number, source in enumerate((written(tmp_path / "f", files), packed(tmp_path / "a.tar", files.items()))):
        imported = begun()
        add_paths(imported, source, limits=Limits(files=9 + number))
        assert imported.origins.get().series is None
        (cut, total) = sorted(refused_by_reason(imported))
        assert "is left out, so the logs of this test are incomplete" in cut
        assert "Number of files left out: 4." in total
        undo_import(imported, by=None)


def test_a_trial_with_too_many_characters_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.imports.log_series.MAX_CHARACTERS", 50)
    imported = begun()
    add(imported, {"D/t_bw.1.log": ROWS, "D/t_bw.2.log": ROWS})
    (reason,) = refused_by_reason(imported)
    assert "Use log_avg_msec" in reason


def test_the_same_log_twice_is_not_another_job() -> None:
    imported = begun()
    add_found(imported, [Read("t_bw.1.log", ROWS), Read("t_bw.1.log", ROWS)])
    assert Result.objects.count() == 0
    (reason,) = refused_by_reason(imported)
    assert "two logs with the same path" in reason
    assert imported.files.first().notes == ["It is t_bw.1.log."]  # type: ignore[union-attr]


def test_the_same_folder_twice_changes_nothing() -> None:
    files = a_folder(2)
    add(begun(), files)
    second = begun()
    add(second, files)
    assert (Origin.objects.count(), second.origins.count()) == (2, 0)
    reasons = refused_by_reason(second)
    assert sorted(reasons.values()) == [2, 24]  # one line for the tests, and one for their logs
    notes = {file.path: file.notes for file in second.files.all()}
    assert notes["D/randwrite-1-4.json"] == ["The file is D/randwrite-1-4.json."]
    assert notes["D/randwrite-iodepth-1-numjobs-4_bw.1.log"] == ["The test is D/randwrite-1-4.json."]
    assert second.files.filter(reason="").count() == 0


def test_latencies_of_fio_2_are_in_us() -> None:
    imported = begun()
    add(imported, {"D/randwrite-1-4.json": a_test(1, "fio-2.2.10"), **{f"D/{n}": t for n, t in logs_of(1).items()}})
    (points,) = series_of(Origin.objects.get()).values()
    assert points[0]["latency_mean_ns"] == 501_000
    assert ImportedFile.objects.filter(notes=["Part of the time series of D/randwrite-1-4.json."]).count() == 12


TEST, NOTE = "D/randwrite-1-4.json", "Part of the time series of D/randwrite-1-4.json."


def with_logs(test: str, logs: dict[str, str]) -> Import:
    imported = begun()
    add(imported, {TEST: test, **{f"D/{name}": text for name, text in logs.items()}})
    return imported


def the_reason(imported: Import) -> tuple[str, str]:
    """Of all logs, with its detail: the test has no series."""
    assert imported.origins.get().series is None
    (reason,) = {(file.reason, *file.notes) for file in imported.files.filter(format="fio-log")}
    return reason if len(reason) == 2 else (*reason, "")


def test_a_series_without_the_logs_of_some_jobs_is_left_out() -> None:
    logs = {name: text for name, text in logs_of(1).items() if ".4.log" not in name}
    reason, detail = the_reason(with_logs(a_test(1), logs))
    assert reason.startswith("The logs have fewer I/Os than the test: logs of some jobs are missing")
    assert detail == "They have 75 % of its I/Os."


def test_a_copy_of_a_log_is_not_another_job() -> None:
    logs = logs_of(1)
    copies = {f"{name}.bak": text for name, text in logs.items() if "_iops" in name}
    reason, detail = the_reason(with_logs(a_test(1), logs | copies))
    assert "one of them is a copy" in reason
    assert "200 %" in detail


def test_logs_with_other_rates_or_directions_are_of_another_test() -> None:
    assert "another test" in the_reason(with_logs(a_test(1, iops=90_000), logs_of(1)))[0]
    Import.objects.all().delete()
    reads = {name: text.replace(", 1, 0", ", 0, 0") for name, text in logs_of(1).items()}
    assert "direction read, but the test has none" in the_reason(with_logs(a_test(1), reads))[0]


def test_a_test_that_stopped_before_its_last_interval_has_a_series() -> None:
    """fio logs no last interval."""
    imported = with_logs(a_test(1, runtime=2900), logs_of(1))
    assert imported.origins.get().series is not None


def test_largest_latencies_are_not_stored_as_means() -> None:
    """With log_max_value."""
    imported = with_logs(a_test(1, clat_ns={"mean": 200, "max": 700}), {
        name: text.replace(", 1, 0", "000, 1, 0") if "clat" in name else text for name, text in logs_of(1).items()
    })  # fmt: skip
    (points,) = series_of(imported.origins.get()).values()
    assert {point["latency_mean_ns"] for point in points} == {None}
    assert points[0]["iops"] == JOBS * 501
    notes = {file.path.split("_")[1][:4]: file.notes[0] for file in imported.files.filter(format="fio-log")}
    assert notes["iops"] == NOTE
    assert "log_max_value" in notes["clat"]


def test_logs_since_1970_begin_with_their_first_interval() -> None:
    """With log_unix_epoch."""
    since_1970 = {
        name: "".join(
            f"1795660236{row[1:]}\n" if row[0] == "1" else f"1795660237{row[1:]}\n" for row in text.split("\n") if row
        )
        for name, text in logs_of(1).items()
    }
    imported = with_logs(a_test(1), since_1970)
    (points,) = series_of(imported.origins.get()).values()
    assert [point["offset_ms"] for point in points] == [1000, 2000]
    assert [point["iops"] for point in points] == [JOBS * 501, JOBS * 701]


def test_one_log_of_all_jobs_is_their_sum() -> None:
    """With per_job_logs=0, fio appends the rows of each job to one file."""
    name = "randwrite-iodepth-1-numjobs-4"
    one_log = {f"{name}_{kind}.log": logs_of(1)[f"{name}_{kind}.1.log"] * JOBS for kind in ("bw", "iops", "clat")}
    imported = with_logs(a_test(1), one_log)
    (points,) = series_of(imported.origins.get()).values()
    assert [point["iops"] for point in points] == [JOBS * 501, JOBS * 701]
    assert points[0]["latency_mean_ns"] == 501


def a_file_of(*jobs: str, timestamp: int = 1_700_000_000, runtime: int = 2000) -> str:
    """Jobs of one run, each of its own group, as with `stonewall`."""
    one = json.loads(a_test(1, runtime=runtime))
    parts = [{**one["jobs"][0], "jobname": name, "groupid": place} for place, name in enumerate(jobs)]
    return json.dumps({**one, "timestamp": timestamp, "timestamp_ms": timestamp * 1000, "jobs": parts}, indent=1) + "\n"


def named(prefix: str) -> dict[str, str]:
    return {f"D/{name.replace('randwrite-iodepth-1-numjobs-4', prefix)}": text for name, text in logs_of(1).items()}


def test_logs_of_several_jobs_that_ran_one_after_another_are_not_added() -> None:
    imported = begun()
    add(imported, {"D/st.json": a_file_of("first", "second"), **named("st")})
    assert [origin.name for origin in imported.origins.order_by("number")] == ["first", "second"]
    (reason,) = refused_by_reason(imported)
    assert reason.startswith("The name of these logs fits several tests of a file.")


@pytest.mark.parametrize("file", ["st", "second"])
def test_logs_with_the_name_of_a_job_join_its_test(file: str) -> None:
    imported = begun()
    add(imported, {f"D/{file}.json": a_file_of("first", "second"), **named("second")})
    assert [origin.name for origin in imported.origins.exclude(series=None)] == ["second"]
    assert imported.origins.count() == 2


def test_logs_join_the_test_with_exactly_their_name() -> None:
    imported = begun()
    old, new = a_file_of("one", timestamp=1_600_000_000), a_file_of("two")
    add(imported, {"D/q.old.json": old, "D/q.json": new, **named("q")})
    assert [origin.name for origin in imported.origins.exclude(series=None)] == ["two"]
    assert imported.origins.count() == 2


@pytest.mark.parametrize(("option", "folder"), [("pre", "D"), ("logs/pre", "D/logs"), ("/root/logs/pre", "D")])
def test_logs_that_the_options_name_join_their_test(option: str, folder: str) -> None:
    imported = begun()
    document = json.loads(a_file_of("first", "second"))
    document["jobs"][0]["job options"] = document["jobs"][0]["job options"] | {"write_bw_log": option}
    logs = {path.replace("D/", f"{folder}/"): text for path, text in named("pre").items()}
    add(imported, {"D/result.json": json.dumps(document), **logs})
    assert [origin.name for origin in imported.origins.exclude(series=None)] == ["first"]
    assert refused_by_reason(imported) == {}


def test_logs_that_the_options_of_several_files_name_belong_to_none_of_them() -> None:
    imported = begun()
    document = json.loads(a_file_of("first"))
    document["global options"] = {"write_bw_log": "pre"}
    files = {f"D/{name}.json": json.dumps(document | {"timestamp": at}) for at, name in enumerate("ab", start=10**9)}
    add(imported, {**files, **named("pre")})
    assert [origin.name for origin in imported.origins.exclude(series=None)] == ["pre"]  # of the logs alone


def test_logs_join_the_last_of_several_runs_in_a_file() -> None:
    imported = begun()
    runs = [a_file_of("t", timestamp=1_700_000_000 + 100 * run, runtime=2000 + run) for run in range(3)]
    add(imported, {"D/q.json": "".join(runs), **named("q")})
    assert [origin.repeat for origin in imported.origins.exclude(series=None)] == [3]
    assert imported.origins.count() == 3
