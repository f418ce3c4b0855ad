"""Every command against the real application."""

import csv
import io
import itertools
import json
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl

import pyarrow.parquet
import pytest
from django.db.models import F

from webapp.analysis.answer import Conclusion
from webapp.analysis.comparing import compare
from webapp.analysis.question import read_query
from webapp.analysis.reviews import review_finding
from webapp.analysis.run_answer import run_answer
from webapp.api.tests.command.shell import PLAN, URL, Shell
from webapp.hosts.models import EnrolmentToken, Host, Target
from webapp.plans.models import Plan
from webapp.results.models import Import, ImportedFile, Result
from webapp.runs.models import Run, RunState
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import Lab
from worker.client import runs
from worker.client.errors import ExitCode
from worker.client.results import once_each
from worker.client.server import Request, Server


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "nightly.yaml"
    path.write_text(PLAN)
    return str(path)


def test_a_plan_is_checked_and_saves_nothing(shell: Shell, host: Host, plan: str) -> None:
    assert shell("plan", "check", plan)[:2] == (
        0,
        "The plan is valid. Add --host and --target to see trials, time and bytes.\n",
    )
    code, said, _ = shell("plan", "check", plan, "--host", "storage1")
    assert (code, said.splitlines()[0]) == (0, "Trials   4")
    assert (
        json.loads(shell("plan", "check", plan, "--target", "storage1/scratch", "--json")[1])["estimate"]["trials"] == 4
    )
    Path(plan).write_text(PLAN.replace("randread", "sideways"))
    code, said, _ = shell("plan", "check", plan)
    assert code == 1
    assert said.startswith("Problem: Part a: Pattern: `sideways` is not one of")
    Path(plan).write_text("parts: [")
    assert shell("plan", "check", plan)[0] == 1
    assert not Plan.objects.exists()


JOB = "[global]\nsize=${SIZE}\ninclude common.fio\n[reads]\nrw=randread\n[writes]\nrw=write\n"


@pytest.fixture
def job(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "job.fio").write_text(JOB)
    (tmp_path / "common.fio").write_text("runtime=3\ntime_based\nthread\n")
    return str(tmp_path / "job.fio"), "--set", "SIZE=1m", "--include", str(tmp_path / "common.fio")


def test_a_job_file_is_checked_with_its_variables_and_its_files(shell: Shell, host: Host, job: tuple[str, ...]) -> None:
    code, said, _ = shell("plan", "check", *job, "--target", "storage1/scratch")
    assert code == 0
    assert "- `thread` ignored: jobs are processes." in said
    assert "Trials   3" in said
    code, _, said = shell("plan", "check", job[0])
    assert code == 1
    assert "Line 2: `size` needs a value of the variable `SIZE`" in said
    assert "Line 3: `include` needs the file `common.fio`" in said
    assert shell("plan", "push", *job)[1].startswith("Plan job version 1 saved: ")
    assert shell("plan", "check", job[0], "--set", "SIZE")[0] == 2


def test_a_command_of_fio_is_printed_as_a_plan(shell: Shell, job: tuple[str, ...], tmp_path: Path) -> None:
    command = "fio --filename=/dev/sdx --direct=1 --name=a --rw=randread --bs 8k --runtime=3 --time_based --name=b"
    code, said, _ = shell("plan", "from", f"{command} --rw=write --runtime=3", "--title", "Both")
    assert code == 0
    (tmp_path / "both.yaml").write_text(said)
    assert shell("plan", "check", str(tmp_path / "both.yaml"))[0] == 0
    assert "title: Both" in said
    assert "block_size: 8k" in said
    assert "reads" in shell("plan", "from", *job)[1]
    code, _, said = shell("plan", "from", "fio --name=a --exec_prerun=id")
    assert (code, "it runs a program" in said) == (1, True)
    assert not Plan.objects.exists()


def test_a_plan_is_created_then_updated(shell: Shell, plan: str) -> None:
    assert shell("plan", "push", plan)[:2] == (0, "Plan nightly version 1 saved: http://testserver/plans/nightly/\n")
    assert "nothing was saved" in shell("plan", "push", plan)[1]
    Path(plan).write_text(PLAN.replace("repeats: 2", "repeats: 5"))
    assert shell("plan", "push", plan)[1].startswith("Plan nightly version 2 saved: ")
    assert shell("plan", "push", plan, "--name", "other", "--json")[0] == 0
    assert set(Plan.objects.values_list("slug", flat=True)) == {"nightly", "other"}


def test_a_run_is_started_once_and_waited_for(shell: Shell, host: Host, plan: str) -> None:
    shell("plan", "push", plan)
    shell.django.failures = [ConnectionResetError("reset")]
    code, said, _ = shell("run", "nightly", "--target", "storage1/scratch", "--note", "first")
    assert (code, said) == (0, "Run 1 of nightly version 1: http://testserver/runs/1/\n")
    assert Run.objects.get().note == "first"
    shell.django.before = lambda path: _end(1, RunState.DONE) if path.endswith("/wait?seconds=20") else None
    shell.django.failures = [ConnectionResetError("reset")]
    code, said, _ = shell("wait", "1")
    assert (code, said) == (0, "Run 1 done: 0 of 4 trials done, 0 failed. http://testserver/runs/1/\n")
    shell.django.before = lambda path: _end(2, RunState.FAILED) if "/wait" in path else None
    code, said, told = shell("run", "nightly", "--host", "storage1", "--wait", "--json")
    assert (code, json.loads(said)["state"]) == (1, "failed")
    assert told.startswith("Run 2 of nightly version 1: ")


def _end(number: int, state: RunState) -> None:
    Run.objects.filter(number=number).update(state=state)


def test_a_plan_that_cannot_be_started_on_its_targets_fails_the_check(shell: Shell, host: Host, plan: str) -> None:
    Path(plan).write_text(PLAN.replace("pattern: randread", "ioengine: libaio, pattern: randread"))
    code, said, _ = shell("plan", "check", plan, "--host", "storage1")
    assert code == 1
    assert said.startswith("Cannot be started: Not supported by the host: ")
    assert shell("plan", "check", plan)[0] == 0  # the plan itself is valid


def test_a_wait_survives_a_failure_of_the_server(shell: Shell, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(500, b'{"code": "server_failed", "message": "The server failed."}')]
    asked = shell.django.__class__.__call__

    def failing(django: object, request: Request) -> tuple[int, bytes]:
        return answers.pop() if "/wait" in request.url and answers else asked(django, request)  # type: ignore[arg-type]

    monkeypatch.setattr(shell.django.__class__, "__call__", failing)
    Run.objects.update(state=RunState.DONE)
    code, _, told = shell("wait", "1")
    assert (code, answers) == (0, [])
    assert "Trying again." in told


@pytest.mark.parametrize("outage", [ConnectionRefusedError("refused"), 500, 502, 503])
def test_a_wait_without_answers_ends_with_lost_contact(
    shell: Shell, lab: Lab, monkeypatch: pytest.MonkeyPatch, outage: Exception | int
) -> None:
    def fail(_django: object, _request: Request) -> tuple[int, bytes]:
        if isinstance(outage, Exception):
            raise outage
        return outage, b'{"code": "x", "message": "The server failed."}'

    monkeypatch.setattr(shell.django.__class__, "__call__", fail)
    times = itertools.count(0, runs.OUTAGE_S / 3)
    monkeypatch.setattr(runs, "monotonic", lambda: next(times))
    code, _, told = shell("wait", "1")
    assert code == ExitCode.CONTACT_LOST
    assert told.count("Trying again.") >= 2
    assert "sweetspot wait 1" in told.splitlines()[-1]


def test_findings_that_cannot_be_read_do_not_change_the_exit_code(
    shell: Shell, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = shell.django.__class__.__call__

    def fail(django: object, request: Request) -> tuple[int, bytes]:
        return (500, b"{}") if "/findings" in request.url else ask(django, request)  # type: ignore[arg-type]

    monkeypatch.setattr(shell.django.__class__, "__call__", fail)
    Run.objects.update(state=RunState.DONE)
    assert shell("wait", "1")[0] == 0


def test_a_wait_that_ends_early_says_how_to_go_on(shell: Shell, lab: Lab) -> None:
    Run.objects.update(state=RunState.RUNNING)
    code, _, told = shell("wait", "1", "--timeout", "0")
    assert code == 6
    assert told.endswith("sweetspot: Run 1 has not ended and continues. To wait again: sweetspot wait 1\n")

    def interrupt(_path: str) -> None:
        raise KeyboardInterrupt

    shell.django.before = interrupt
    code, _, told = shell("wait", "1")
    assert code == 130
    assert "Run 1 continues on the server. To wait again: sweetspot wait 1 – to stop it: sweetspot cancel 1" in told


def test_runs_are_listed_and_cancelled(shell: Shell, lab: Lab) -> None:
    code, said, _ = shell("runs", "--host", "storage1")
    assert code == 0
    assert said.splitlines()[1].split()[:3] == ["1", "plan-1", "v1"]
    assert json.loads(shell("runs", "--state", "failed", "--json")[1]) == []
    assert shell("cancel", "1")[:2] == (0, "Run 1 is done.\n")
    assert shell("wait", "9")[0] == 4


def test_results_are_a_table_csv_or_json(shell: Shell, lab: Lab) -> None:
    code, said, _ = shell("results", "run=1", "factor.ioengine=psync")
    assert (code, len(said.splitlines())) == (0, 4)
    rows = list(csv.DictReader(io.StringIO(shell("results", "run=1", "--csv")[1])))
    assert sorted(float(row["iops"]) for row in rows) == [61, 62, 63, 99, 100, 101]
    assert {row["factor.ioengine"] for row in rows} == {"psync", "io_uring"}
    assert len(json.loads(shell("results", "--json")[1])) == 6
    assert shell("results", "run=1", "repeat=9") == (0, "", "No results match.\n")
    assert shell("results", "colour=red")[0] == 4
    assert shell("results", "run")[0] == 2


def test_parquet_is_written_by_the_server(shell: Shell, lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    code, said, told = shell("results", "run=1", "factor.ioengine=psync", "--limit", "2", "--parquet", str(path))
    assert (code, said, told) == (0, "", f"Results written to {path}\n")
    assert pyarrow.parquet.read_table(path, columns=["iops"]).to_pydict() == {"iops": [63.0, 62.0]}
    shell.django.failures = [ConnectionResetError("reset")]
    assert shell("results", "--parquet", str(tmp_path / "other.parquet"))[0] == 3
    assert shell("results", "colour=red", "--parquet", str(path))[0] == 4
    assert shell("results", "--parquet", str(tmp_path / "none" / "r.parquet"))[0] == 2
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_parquet_file_is_not_written(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "download", lambda _self, _path, _query, into: into.write(b"<html>"))
    code, _, told = shell("results", "--parquet", str(tmp_path / "r.parquet"))
    assert (code, "no whole Parquet file" in told, list(tmp_path.iterdir())) == (1, True, [])
    assert shell("results", "--parquet", "/")[0] == 2


def test_streams_of_a_trial_are_results_of_their_own() -> None:
    streams = [{"trial": "t", "direction": "read", "point_key": key} for key in ("reader", "scrubber", "reader")]
    assert [item["point_key"] for item in once_each(streams)] == ["reader", "scrubber"]


def test_a_comparison_has_three_outcomes(shell: Shell, lab: Lab) -> None:
    fast, slow = "run=1&factor.ioengine=io_uring", "run=1&factor.ioengine=psync"
    code, said, _ = shell("compare", fast, slow, "--fail-if-worse", "5%")
    assert code == 1
    assert said.splitlines()[1].startswith("worse")
    assert "is worse than A" in said
    assert shell("compare", slow, fast, "--fail-if-worse", "5")[0] == 0
    assert shell("compare", "1", "1", "--fail-if-worse", "5%")[0] == 4  # a run against itself
    lab.measure(50.0, 100.0, 200.0, ioengine="io_uring", iodepth=7)
    other = Lab(lab.target, number=2)
    other.measure(60.0, 100.0, 180.0, ioengine="io_uring", iodepth=7)
    unclear = ["compare", "run=1&factor.iodepth=7", "2"]
    assert shell(*unclear, "--fail-if-worse", "5%")[0] == 5
    assert shell(*unclear)[0] == 0
    assert json.loads(shell(*unclear, "--json")[1])["outcome"] == "unclear"
    assert shell("compare", "1", "9", "--fail-if-worse", "5%")[0] == 4
    assert shell("compare", "1", "nightly")[0] == 2


def test_a_comparison_ends_with_the_findings_of_b(shell: Shell, lab: Lab) -> None:
    other = Lab(lab.target, number=2)
    for jobs, iops in {1: 458.0, 2: 919.0, 4: 1820.0, 8: 2000.0, 16: 2000.0, 32: 2000.0}.items():
        lab.measure(iops, numjobs=jobs)
        other.measure(iops, numjobs=jobs)
    (finding,) = run_answer(other.run).findings
    said = shell("compare", "run=1", "2")[1]
    assert said.splitlines()[-1] == f"Finding: {finding.sentence} {URL}/explore/?{finding.query}"
    review_finding(of=other.run, key=finding.key, verdict="dismissed", reason="", by=a_user("ann"))
    assert finding.query not in shell("compare", "run=1", "2")[1]
    assert "Finding:" not in shell("compare", "run=1", "run=2")[1]


def test_a_run_after_another_may_be_worse_by_drift(shell: Shell, lab: Lab) -> None:
    """The command says what Explore says of the same two runs, and what it cannot know."""
    speeds = {2: (1000.0, 1001.0, 999.0), 3: (900.0, 901.0, 899.0)}
    for number, values in speeds.items():
        Lab(lab.target, number=number).measure(*values, iodepth=7)
        Result.objects.filter(run__number=number).update(measured_at=F("measured_at") + timedelta(hours=number))
    code, said, _ = shell("compare", "2", "3", "--fail-if-worse", "5%")
    assert code == 1
    assert said.splitlines()[1].startswith("worse or drift")
    made = compare(read_query(parse_qsl("x=matched&series=run&panel=direction&run=2,3&baseline=2")))
    series = made.panels[0].series[1]
    assert series.conclusion is Conclusion.MAY_BE_DRIFT
    assert series.sentence in said
    assert [line for line in said.splitlines() if line.startswith("Limit: ")]
    verdict = json.loads(shell("compare", "2", "3", "--json")[1])
    assert verdict["same"]
    assert all(text in shell("compare", "2", "3")[2] for text in verdict["same"])
    row = json.loads(shell("compare", "2", "3", "--json")[1])["rows"][0]
    assert (row["conclusion"], row["order"], row["repeats"]) == (series.conclusion, series.order, 3)


def test_single_values_pass_or_fail_only_if_asked(shell: Shell, lab: Lab) -> None:
    lab.measure(1000.0, ioengine="io_uring", iodepth=7)
    lab.measure(900.0, ioengine="psync", iodepth=7)
    sides = ["compare", "run=1&factor.iodepth=7&factor.ioengine=io_uring", "run=1&factor.iodepth=7"]
    sides[2] += "&factor.ioengine=psync"
    code, said, _ = shell(*sides, "--fail-if-worse", "5%")
    assert code == 5
    assert "or judge their values with --single-values" in said
    code, said, _ = shell(*sides, "--fail-if-worse", "5%", "--single-values")
    assert code == 1
    assert said.splitlines()[1].startswith("fails")
    assert "one value on each side, no interval" in said
    assert "B is worse" not in said
    assert "do not show that B differs" in said
    assert shell(*sides, "--fail-if-worse", "15%", "--single-values")[0] == 0


def test_a_change_has_enough_digits_to_tell_it_from_the_tolerance(shell: Shell, lab: Lab) -> None:
    for number, speed in ((2, 100_000.0), (3, 94_960.0)):
        Lab(lab.target, number=number).measure(speed, iodepth=7)
    code, said, _ = shell("compare", "2", "3", "--fail-if-worse", "5%", "--single-values")
    assert (code, "-5.04 %" in said, "-5.0 %" in said) == (1, True, False)


def test_ignored_factors_may_differ(shell: Shell, lab: Lab) -> None:
    for number, engine, speed in ((2, "io_uring", 1000.0), (3, "psync", 500.0)):
        Lab(lab.target, number=number).measure(speed, speed, speed, ioengine=engine, iodepth=7)
    assert shell("compare", "2", "3", "--fail-if-worse", "5%")[0] == 5
    assert shell("compare", "2", "3", "--fail-if-worse", "5%", "--ignore", "ioengine", "--ignore", "iodepth")[0] == 1


def test_folders_are_imported_with_labels_from_their_paths(shell: Shell, db: None, tmp_path: Path) -> None:
    (tmp_path / "lab1" / "PM9A3").mkdir(parents=True)
    (tmp_path / "lab1" / "PM9A3" / "table.csv").write_text("pattern,block_size,iodepth,iops\nrandread,4k,1,10200\n")
    code, said, _ = shell("import", str(tmp_path / "lab1"), "--label", "{host}/{drive}/*.csv", "--set", "rack=7")
    assert code == 0
    assert said.startswith("Import 1 “lab1”: 1 results from 1 files, 0 of them left out. ")
    assert Import.objects.get().labels == {"rack": "7"}
    (item,) = json.loads(shell("results", "import=1", "--json")[1])
    assert (item["target"], item["iops"]) == ("lab1/PM9A3", 10200)
    assert ImportedFile.objects.get().path == "lab1/PM9A3/table.csv"
    assert shell("import", str(tmp_path / "lab1"))[0] == 1  # again
    assert shell("import", str(tmp_path / "nothing"))[0] == 2


def test_files_of_several_folders_keep_their_folders(shell: Shell, db: None, tmp_path: Path) -> None:
    """Otherwise files with the same name would be repeats of one test."""
    for number, drive in enumerate(("PM9A3", "PM1733"), start=1):
        (tmp_path / drive).mkdir()
        (tmp_path / drive / "table.csv").write_text(f"pattern,block_size,iops\nrandread,4k,{number}\n")
    tables = sorted(tmp_path.glob("*/table.csv"))
    assert shell("import", *map(str, tables), "--label", "{drive}/*.csv")[0] == 0
    assert [file.path for file in ImportedFile.objects.order_by("path")] == ["PM1733/table.csv", "PM9A3/table.csv"]
    assert {origin.drive for origin in Import.objects.get().origins.all()} == {"PM1733", "PM9A3"}


def test_columns_of_a_csv_are_stated(shell: Shell, db: None, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("Workload,IO/s\nrandread,10200\n")
    path = str(tmp_path / "own.csv")
    assert shell("import", path)[0] == 1
    assert shell("import", path, "--column", "Workload=pattern", "--column", "IO/s=iops")[0] == 0
    (item,) = json.loads(shell("results", "import=2", "--json")[1])
    assert (item["iops"], item["point"]["pattern"]) == (10200, "randread")
    code, _, problem = shell("import", path, "--column", "IO/s=ipos")
    assert (code != 0, "Did you mean `iops`?" in problem) == (True, True)


def test_hosts_and_their_targets_are_listed(shell: Shell, host: Host) -> None:
    assert shell("hosts")[1].splitlines()[1].startswith("storage1  ")
    assert shell("hosts", "storage1")[1].splitlines()[1].startswith("storage1/scratch  directory")
    a_target(host, "bench", kind="pool", destroy=True, stable_id="pool:bench:0123456789ab")
    assert "pool:" not in shell("hosts", "storage1")[1]
    Target.objects.filter(slug="bench").delete()
    a_target(host, "other")
    code, _, told = shell("run", "x", "--host", "storage1")
    assert (code, told) == (
        2, "sweetspot: storage1 has 2 ready targets. Choose with --target: storage1/other, storage1/scratch.\n"
    )  # fmt: skip


def test_an_operator_may_not_enrol_hosts(shell: Shell) -> None:
    code, _, told = shell("enrol", "storage2")
    assert (code, told) == (
        4, "sweetspot: Your role is operator; this requires the admin role. An admin can give it to you.\n"
    )  # fmt: skip
    assert not EnrolmentToken.objects.exists()
