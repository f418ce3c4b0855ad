"""Importing into the database: what is stored, repeats, labels, the same file twice, undo."""

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from msgspec.structs import replace

from webapp.analysis.comparing import compare
from webapp.analysis.question import read_query
from webapp.analysis.trial_metrics import totals
from webapp.core.errors import Refusal
from webapp.core.models import Role
from webapp.imports.formats.tests.examples import DATA
from webapp.imports.reading.limits import Read, Refused
from webapp.imports.selectors import refused_by_reason, results_of
from webapp.imports.services import add_found, add_paths, begin_import, end_import, undo_import
from webapp.imports.storing import Store
from webapp.imports.values import number
from webapp.results.metrics import entered_metric
from webapp.results.models import BOTH, Import, ImportedFile, ImportState, Origin, Result
from webapp.results.reading.doubts import doubts
from webapp.results.reading.filter import read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.results.selectors import series_of
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.people import a_user
from webapp.tests.refusals import refuses

pytestmark = pytest.mark.django_db
FIO = DATA / "fio-json" / "3.33-group.json"
LOGS = DATA / "fio-log"


def begun(pattern: str = "", **given: str) -> Import:
    return begin_import(title="Old results", pattern=pattern, given=given, by=None)


def rows_of(imported: Import) -> list[ResultRow]:
    return read_rows(results_of(imported))


def found_by(address: str) -> list[ResultRow]:
    pairs = [tuple(pair.split("=", 1)) for pair in address.split("&")] if address else []
    return read_rows(ResultQuery.of(read_filter(pairs)).results)  # type: ignore[arg-type]


def test_it_stores_values_in_our_units_with_labels() -> None:
    row = rows_of(an_import())[1]
    assert (row.iops, row.bytes_per_s, row.p99_ns) == (151000, 589.8 * 1024**2, 420_000)
    assert row.point == {"pattern": "randread", "block_size": 4096, "iodepth": 32}
    assert (row.host, row.model, row.tool, row.direction) == ("lab1", "PM9A3", "CSV", "read")
    assert (row.ios, row.latency_mean_ns, row.run, row.trial_id) == (None, None, 0, "")
    assert row.facts["folder"] == "results"


def test_of_iops_and_bandwidth_one_follows_from_the_other_and_the_block_size() -> None:
    imported = begun()
    text = "direction,block_size,iops,mib_per_s\nread,16k,,100\nwrite,16k,1000,\nread,,,50\n"
    add_found(imported, [Read("a.csv", text)])
    rates = [(row.iops, row.bytes_per_s) for row in rows_of(imported)]
    assert rates == [(6400, 100 * 1024**2), (1000, 16_384_000), (None, 50 * 1024**2)]


def test_each_file_has_its_outcome() -> None:
    imported = an_import()
    assert imported.state == ImportState.DONE
    assert (imported.files_read, imported.results_made, imported.files_refused) == (2, 3, 1)
    table, notes = imported.files.order_by("id")
    assert (table.path, table.format, table.results, table.reason) == ("results/table.csv", "plain-csv", 3, "")
    assert (notes.results, notes.format, notes.code) == (0, "", "import_refused")


def test_the_same_content_twice_changes_nothing() -> None:
    first, second = an_import(), an_import(title="Again")
    assert (first.results_made, second.results_made) == (3, 0)
    assert Result.objects.count() == 3
    reasons = refused_by_reason(second)
    assert any(reason.startswith("The same content was imported before, by import 1.") for reason in reasons)


def test_the_same_content_twice_in_one_import_counts_once() -> None:
    imported = begun()
    add_found(imported, [Read("a.csv", PLAIN), Read("b.csv", PLAIN)])
    assert Result.objects.count() == 3
    (reason,) = refused_by_reason(imported)
    assert reason.startswith(f"The same content was imported before, by import {imported.number}.")
    assert imported.files.get(path="b.csv").notes == ["The file is a.csv."]


def test_other_measurements_of_the_same_test_are_repeats() -> None:
    imported = begun(drive="PM9A3")
    add_found(imported, [Read("x/1.csv", PLAIN)])
    add_found(
        imported, [Read("x/2.csv", PLAIN.replace("10200", "10300")), Read("y/3.csv", PLAIN.replace("10200", "9"))]
    )
    reads = [row for row in rows_of(imported) if row.point["pattern"] == "randread" and row.point["iodepth"] == 1]
    assert [(row.iops, row.repeat, row.facts["folder"]) for row in reads] == [
        (10200, 1, "x"),
        (10300, 2, "x"),
        (9, 1, "y"),
    ]


def test_labels_of_the_path_are_used_where_the_file_is_silent() -> None:
    imported = begun("{host}/{controller}/{drive}/{rw}-{iodepth}.csv", drive="by hand")
    add_found(imported, [Read("db1/9361-8i/870 EVO/randread-8.csv", "direction,block_size,iops\nread,4k,90000\n")])
    (row,) = rows_of(imported)
    assert (row.host, row.controller, row.model) == ("db1", "9361-8i", "by hand")
    assert row.point == {"block_size": 4096, "pattern": "randread", "iodepth": 8}


def test_a_sum_of_reads_and_writes_has_both_directions() -> None:
    imported = begun()
    add_paths(imported, DATA / "xdd" / "tables.txt")
    add_paths(imported, DATA / "fio-json" / "2.1-each-job.json")
    assert {row.direction for row in rows_of(imported)} >= {"read", "write"}
    assert not Result.objects.filter(direction="mixed").exists()
    assert {row.direction for row in rows_of(imported)} <= {"read", "write", BOTH}


def test_it_reads_fio_with_percentiles_and_histogram() -> None:
    imported = begun()
    stored = add_paths(imported, FIO)
    document = json.loads(FIO.read_text())
    rows = rows_of(imported)
    assert stored.results == len(rows) > 0
    job = document["jobs"][0]
    by_direction = {row.direction: row for row in rows if row.trial == 1}
    for direction, row in by_direction.items():
        assert row.ios == job[direction]["total_ios"]
        assert row.iops == pytest.approx(job[direction]["iops"], rel=0.01)
        assert row.tool_and_version == document["fio version"].replace("-", " ")


def test_what_cannot_be_true_in_a_file_is_left_out_with_a_note() -> None:
    document = json.loads(FIO.read_text())
    document = {**document, "timestamp": 8_000_000_000, "timestamp_ms": None}
    text = "direction,iops,latency_p50_us,latency_p99_us\nread,5,900,3\n"
    imported = begun()
    add_found(imported, [Read("a.csv", text), Read("b.json", json.dumps(document))])
    rows = rows_of(imported)
    assert (rows[0].iops, rows[0].p50_ns, rows[0].p99_ns) == (5, None, None)
    assert {row.measured_at for row in rows} == {imported.created_at}
    notes = [note for file in imported.files.all() for note in file.notes]
    assert any("do not ascend" in note for note in notes)
    assert any("The date 2223-07-06 in the file is not possible." in note for note in notes)


def test_logs_without_a_test_of_fio_are_a_test_of_their_own() -> None:
    logs = [Read(f"4k/{path.name}", path.read_text()) for path in sorted(LOGS.glob("*.log"))]
    csv = "pattern,block_size,iodepth,numjobs,iops\nrandwrite,4k,32,4,1000\n"
    imported = begun()
    stored = add_found(imported, [Read("4k/randwrite-iodepth-32-numjobs-4.csv", csv), *logs])
    assert stored.refused.total() == 0
    own = Origin.objects.exclude(series=None).get()
    assert (own.tool, own.results.count()) == ("fio", 1)  # a CSV is no fio test, so the logs are one of their own
    series = series_of(own)
    assert [*series] == ["write"]
    mean = sum((p["iops"] or 0) * (p["length_ms"] or 0) for p in series["write"]) / sum(
        p["length_ms"] or 0 for p in series["write"]
    )
    assert own.results.get().iops == pytest.approx(mean)
    notes = ImportedFile.objects.filter(path__endswith="_bw.2.log").get().notes
    assert notes == ["Part of the time series of 4k/randwrite-iodepth-32-numjobs-4_bw.1.log."]


def test_logs_join_the_test_of_fio_beside_them_as_its_time_series() -> None:
    """By pattern, queue depth and jobs: the names differ, as those that bench-fio writes."""
    document = json.loads(FIO.read_text())
    document["global options"] = {}
    for job in document["jobs"]:
        job["job options"] = {"rw": "randwrite", "iodepth": "32", "numjobs": "4", "bs": "4k"}
        job["read"] = {}
        job["write"] |= {"iops": 30_116, "bw_bytes": 123_353_139, "runtime": 2000, "lat_ns": {"mean": 2e6, "max": 2e9}}
    text = json.dumps({**document, "jobs": document["jobs"][:1]})
    logs = [Read(f"4k/{path.name}", path.read_text()) for path in sorted(LOGS.glob("*.log"))]
    imported = begun()
    own_file, other = Read("4k/randwrite-32-4.json", text), Read("8k/randwrite-32-4.json", text.replace("4k", "8k"))
    stored = add_found(imported, [own_file, *logs, other])
    assert stored.refused.total() == 0
    own = Origin.objects.exclude(series=None).get()
    assert own.file.path == "4k/randwrite-32-4.json"
    assert [*series_of(own)] == ["write"]
    note = "Part of the time series of 4k/randwrite-32-4.json."
    assert {tuple(file.notes) for file in ImportedFile.objects.filter(format="fio-log")} == {(note,)}


def test_equal_logs_of_several_jobs_all_count_and_the_same_trial_twice_does_not() -> None:
    row = "1000, 500, 0, 0\n2000, 500, 0, 0\n"
    logs = [Read(f"a/randread-iodepth-4-numjobs-2_iops.{job}.log", row) for job in (1, 2)]
    imported = begun()
    assert add_found(imported, logs).refused.total() == 0
    assert Result.objects.get().iops == pytest.approx(1000)
    assert add_found(imported, logs).refused.total() == 2
    assert Result.objects.count() == 1


def test_logs_without_bandwidth_iops_or_latency_say_so() -> None:
    imported = begun()
    stored = add_found(imported, [Read("a_slat.1.log", "1000, 5, 0, 0\n2000, 6, 0, 0\n")])
    (reason,) = stored.refused
    assert "no bandwidth, IOPS or latency" in reason


def test_archives_of_any_depth_and_broken_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as inner:
        inner.writestr("a/table.csv", PLAIN)
        inner.writestr("a/broken.csv", "pattern,iops\nrandread,NaN\n")
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as outer:
        outer.write(tmp_path / "inner.zip", "inner.zip")
        outer.writestr("../../escape.csv", PLAIN)
    imported = begun()
    stored = add_paths(imported, tmp_path / "outer.zip")
    assert (stored.files, stored.results, stored.refused.total()) == (3, 3, 2)
    assert any("leads out of the archive" in reason for reason in refused_by_reason(imported))


def test_results_are_found_by_label_tool_and_import_and_beside_those_of_runs() -> None:
    an_import()
    assert len(found_by("")) == 3
    assert len(found_by("host=lab1&model=PM9A3")) == 3
    assert len(found_by("import=1&tool=CSV&factor.iodepth=32")) == 1
    assert found_by("run=1") == []
    assert found_by("host=storage1") == []
    assert found_by("tool=fio") == []


def test_undo_deletes_everything_that_the_import_brought() -> None:
    by = a_user("olga", Role.OPERATOR)
    kept, undone = an_import(by=by, text=PLAIN.replace("10200", "1")), an_import(by=by)
    undo_import(undone, by=by)
    assert [imported.number for imported in Import.objects.all()] == [kept.number]
    assert (Origin.objects.count(), Result.objects.count(), ImportedFile.objects.count()) == (3, 3, 2)
    assert an_import(by=by).results_made == 3  # it can be imported again


def test_only_its_owner_or_an_admin_may_undo_an_import() -> None:
    imported = an_import(by=a_user("olga", Role.OPERATOR))
    with refuses("import_of_another"):
        undo_import(imported, by=a_user("otto", Role.OPERATOR))
    undo_import(imported, by=a_user("anna", Role.ADMIN))
    assert Import.objects.count() == 0


def test_the_number_of_an_undone_import_is_never_used_again() -> None:
    """Saved comparisons and links name imports by their number."""
    undo_import(an_import(), by=None)
    assert an_import().number == 2


def test_files_of_unlabelled_drives_are_no_repeats() -> None:
    imported = begun()
    add_found(imported, [Read("PM9A3.csv", PLAIN), Read("WD-RED.csv", PLAIN.replace("10200", "180"))])
    assert {row.repeat for row in rows_of(imported)} == {1}


def test_a_drive_column_of_a_csv_is_a_label() -> None:
    imported = begun()
    add_found(imported, [Read("a.csv", "drive,direction,iops\nPM9A3,read,100000\nRED,read,100\n")])
    assert [(row.model, row.repeat) for row in rows_of(imported)] == [("PM9A3", 1), ("RED", 1)]


def test_a_sum_beside_its_directions_counts_once() -> None:
    text = "direction,name,block_size,iops\nread,a,4k,700\nwrite,a,4k,300\n"
    imported = begun()
    add_found(imported, [Read("a.csv", text)])
    read, write = rows_of(imported)
    both = replace(read, direction=BOTH, iops=1000.0)
    (total,) = totals([read, write, both])
    assert (total.iops, total.direction) == (1000, BOTH)


def test_half_of_a_mix_is_not_its_total() -> None:
    text = "direction,name,iops,mib_per_s\nread,a,700,\nwrite,a,,5\n"
    imported = begun()
    add_found(imported, [Read("a.csv", text)])
    found = compare(read_query([("import", str(imported.number)), ("x", "iodepth")]))
    assert found.results == 0
    assert any("2 results are left out" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("direction,iops\nread,151,000\n", "put quotes"),
        ("direction,iops,iops\nread,1,2\n", "two columns"),
        ("direction,name,iops\nread,a\0b,1\n", "NUL"),
    ],
)
def test_what_would_be_stored_wrongly_is_refused(text: str, words: str) -> None:
    imported = begun()
    add_found(imported, [Read("bad\udc80\0.csv", text), Read("good.csv", PLAIN)])
    assert len(rows_of(imported)) == 3
    ((reason, count),) = refused_by_reason(imported).items()
    assert (count, words in reason) == (1, True)


@pytest.mark.parametrize("meanwhile", [end_import, undo_import])
def test_a_batch_for_an_import_that_was_undone_or_ended_meanwhile_is_refused(meanwhile: Callable[..., object]) -> None:
    imported = begun()
    store = Store(imported)
    meanwhile(Import.objects.get(pk=imported.pk), by=None)
    with pytest.raises(Refusal, match="ended or was undone"):
        store.add([])


def test_a_pattern_that_does_not_match_leaves_a_note() -> None:
    imported = begun("{drive}/{rw}-{iodepth}.csv")
    add_found(imported, [Read("table.csv", PLAIN)])
    assert imported.files.get().notes == ["The pattern for labels does not match this path."]


def test_an_ended_import_takes_no_more_files() -> None:
    with pytest.raises(Refusal, match="has ended"):
        add_found(an_import(), [Read("a.csv", PLAIN)])


@pytest.mark.parametrize(
    ("title", "pattern", "label", "words"),
    [
        (" ", "", "x", "title"),
        ("t", "{drive", "x", "bracket"),
        ("t", "", "x" * 300, "at most"),
    ],
)
def test_it_refuses_a_bad_title_pattern_or_label(title: str, pattern: str, label: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        begin_import(title=title, pattern=pattern, given={"drive": label}, by=None)


def test_labels_with_a_nul_character_are_refused() -> None:
    for given in ({"drive\0": "x"}, {"drive": "x\0"}):
        with pytest.raises(Refusal, match="NUL"):
            begin_import(title="t", pattern="", given=given, by=None)


def test_a_refused_file_counts_and_the_others_are_stored() -> None:
    imported = begun()
    stored = add_found(imported, [Refused("big.json", "The file is larger than 24 MiB."), Read("a.csv", PLAIN)])
    assert (stored.files, stored.results) == (2, 3)
    assert refused_by_reason(imported) == {"The file is larger than 24 MiB.": 1}
    assert end_import(imported, by=None).files_refused == 1


def test_the_command_prints_what_became_of_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "PM9A3").mkdir()
    (tmp_path / "PM9A3" / "table.csv").write_text(PLAIN)
    (tmp_path / "PM9A3" / "notes.txt").write_text("nothing")
    call_command("import_results", str(tmp_path), "--label", "{drive}/table.csv", "--set", "host=lab1", "--json")
    outcome = json.loads(capsys.readouterr().out)
    assert list(outcome["refused"].values()) == [1]
    assert (outcome["files_read"], outcome["results_made"], outcome["files_refused"]) == (2, 3, 1)
    assert {(row.host, row.model) for row in rows_of(Import.objects.get())} == {("lab1", "PM9A3")}
    assert outcome["notes"] == {}


def test_the_command_says_that_the_pattern_for_labels_matches_no_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for drive, iops in (("PM9A3", "10200"), ("P5800X", "10300")):
        (tmp_path / drive).mkdir()
        (tmp_path / drive / "table.csv").write_text(PLAIN.replace("10200", iops))
    call_command("import_results", str(tmp_path), "--label", "{host}/{drive}/table.csv", "--json")
    assert list(json.loads(capsys.readouterr().out)["notes"].values()) == [2]


def test_the_command_names_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no"):
        call_command("import_results", str(tmp_path / "absent"))
    assert Import.objects.count() == 0


def test_imported_tests_that_do_not_show_the_drive_alone_are_doubted() -> None:
    made = begun()
    cached = "/dev/sda:\n Timing cached reads: 20000 MB in 2.00 seconds = 10000.00 MB/sec\n"
    job = json.loads(FIO.read_text())
    job["jobs"].append({**job["jobs"][0], "jobname": "other"})
    add_found(made, [Read("a.txt", cached), Read("b.json", json.dumps(job, indent=2))])
    words = [doubt.short for row in rows_of(made) for doubt in doubts(row)]
    assert words == ["memory, not a drive", *["beside other jobs"] * 4]


def test_a_job_with_an_error_and_a_contradiction_are_doubted() -> None:
    made = begun()
    job = json.loads(FIO.read_text())
    job["jobs"][0]["error"] = 5
    for way in ("read", "write"):
        job["jobs"][0][way]["iops"] *= 3
    add_found(made, [Read("b.json", json.dumps(job, indent=2))])
    words = [sorted(doubt.short for doubt in doubts(row)) for row in rows_of(made)]
    assert words == [["contradicts itself", "ended with an error"]] * 2


def test_no_mean_covers_several_tests_of_one_import() -> None:
    """Read and Re-read of iozone have equal factors; the second comes from the page cache."""
    made = an_import(text="name,pattern,block_size,iops\nRead,read,4k,100\nRe-read,read,4k,900\n")
    compared = compare(read_query([("x", "block_size"), ("import", str(made.number))]))
    assert [(one.name, [level.key for level in one.levels]) for one in compared.mixtures] == [
        ("test", ["Re-read", "Read"])
    ]
    assert compared.panels == ()


def test_a_stated_percentile_of_too_few_ios_is_left_out_with_a_note() -> None:
    document = json.loads(FIO.read_text())
    read = document["jobs"][0]["read"]
    read["total_ios"] = 25
    read["clat_ns"]["percentile"] = {"50.000000": 100_000, "99.000000": 290_000, "99.900000": 290_000}
    document["jobs"] = document["jobs"][:1]
    imported = begun()
    add_found(imported, [Read("a.json", json.dumps(document))])
    row = next(row for row in rows_of(imported) if row.direction == "read")
    assert (row.ios, row.p50_ns, row.p99_ns, row.p999_ns) == (25, 100_000, None, None)
    note = "p99, p99.9 left out: 25 I/Os are too few. A percentile needs 10 I/Os beyond it."
    assert note in imported.origins.get().notes


def test_a_difference_within_the_printed_step_of_a_tool_is_not_claimed() -> None:
    """sysbench prints 0.06 and 0.07 ms, each of three times: the ratio is between 0.065 / 0.065 and 0.075 / 0.055."""
    text = (DATA / "sysbench-fileio" / "1.0-seqwr.txt").read_text()
    printed = re.search(r"95th percentile: +([\d.]+)", text)
    assert printed
    for drive, p95 in (("A", "0.06"), ("B", "0.07")):
        imported = begun(drive=drive)
        latency = text.replace(printed[0], printed[0].replace(printed[1], p95))
        repeats = [latency.replace("1.0003s", f"1.000{n}s") for n in range(3)]
        assert len({text, *repeats}) == 4
        add_found(imported, [Read(f"{n}.txt", repeat) for n, repeat in enumerate(repeats)])
    query = read_query([("x", "block_size"), ("series", "model"), ("metric", "latency_p95"), ("baseline", "A")])
    (panel,) = compare(query).panels
    against = panel.series[1].against_baseline
    assert against is not None
    assert against.better is None
    assert (against.ratio.low or 0) < 1 < (against.ratio.high or 0)


def test_the_command_takes_the_columns_of_a_csv(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("Workload,a=b\nrandread,10200\n")
    with pytest.raises(CommandError, match="Did you mean `iops`"):
        call_command("import_results", str(tmp_path), "--column", "a=b=ipos")
    call_command("import_results", str(tmp_path), "--column", "Workload=pattern", "--column", "a=b=iops")
    (row,) = rows_of(Import.objects.get())
    assert (row.iops, row.point) == (10200, {"pattern": "randread"})


def test_percentiles_of_terse_output_need_enough_ios_too() -> None:
    """It states no number of I/Os: 119 IOPS in 1 s are too few for p95."""
    imported = begun()
    add_paths(imported, DATA / "fio-terse" / "3.33-v3.txt")
    result = Result.objects.get(direction="read")
    assert (result.ios, result.p50_ns is not None, result.p95_ns, result.p99_ns) == (None, True, None, None)
    assert any(
        "119 I/Os are too few" in note or "120 I/Os are too few" in note for note in imported.origins.get().notes
    )


def test_printed_digits_are_the_step_of_a_rate_without_counts() -> None:
    """True +10 % with 1 % noise: two assumed digits would widen the interval to ±10 %."""
    head = "pattern,block_size,iodepth,iops,mib_per_s\n"
    for drive, rates in (("A", (9950, 10100, 10000, 9900, 10050)), ("B", (11050, 10950, 11000, 11100, 10900))):
        text = head + "".join(f"randread,4k,1,{rate},{rate * 4 / 1024:.1f}\n" for rate in rates)
        an_import(title=drive, drive=drive, text=text)
    stored = Result.objects.first()
    assert stored is not None
    assert (stored.metrics["iops_step"], stored.metrics["bytes_per_s_step"]) == (1.0, pytest.approx(0.1 * 2**20))
    for metric in ("iops", "bytes_per_s"):
        query = read_query([("x", "iodepth"), ("series", "model"), ("metric", metric)])
        against = compare(query).panels[0].series[1].cells[0].against_baseline
        assert against is not None
        assert against.ratio.low is not None
        assert against.ratio.high is not None
        assert 1.08 < against.ratio.low < 1.1 < against.ratio.high < 1.12
    assert entered_metric("iops_step") is None
    assert entered_metric("bytes_per_s_step") is None


def test_a_number_keeps_its_printed_step_in_another_unit() -> None:
    assert [number(text).step for text in ("8695", "4.2", "4.20", "1.5e3", "2e-3")] == pytest.approx(
        [1, 0.1, 0.01, 100, 0.001]
    )
    assert (number("4.2") * 1024).step == pytest.approx(102.4)
    assert (number("4.2") / 10).step == pytest.approx(0.01)
    assert type(number("4.2") + 1) is float
