"""Layouts through the whole system: a pool of loop devices, put together, measured, and left blank whatever happens."""

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.test import Client

from webapp.plans.document import Part, PartStream, PlanDocument
from webapp.results.models import Result, known
from webapp.results.reading.rows import read_rows
from webapp.runs.models import Run, RunState, SettingChange, TargetLock
from webapp.runs.services import cancel_run
from webapp.tests.factories.people import operator
from webapp.tests.system import StorageHost, System
from worker.guard.tests import rig
from worker.layouts import steps

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices"),
]
DRIVES = 3
_numbers = itertools.count(1)
SMALL = {"size": "8M", "runtime": "1s", "pattern": "randread", "ioengine": "psync", "block_size": "4k"}


@pytest.fixture
def drives(tmp_path: Path) -> Iterator[list[tuple[str, Path]]]:
    with ExitStack() as held:
        files = [rig.sparse(tmp_path / f"drive{n}.img", 400 * rig.MIB) for n in range(DRIVES)]
        yield [(held.enter_context(rig.loop(file, "--partscan")), file) for file in files]


@pytest.fixture
def racked(system: System, drives: list[tuple[str, Path]]) -> Iterator[StorageHost]:
    tables = [
        f'[[target]]\nid = "d{n}"\nkind = "block"\npath = "{device}"\nstable_id = "loop:{file}"\ndestroy = true\n'
        'settings = ["read_ahead_kb", "scheduler"]\n'
        for n, (device, file) in enumerate(drives)
    ]
    pools = {"rack": ["d0", "d1"], "front": ["d0"], "back": ["d1"], "third": ["d2"]}
    named = [f'[[pool]]\nid = "{pool}"\ndrives = {json.dumps(names)}\n' for pool, names in pools.items()]
    host = system.add_host(f"racked{next(_numbers)}", "\n".join([*tables, *named]))
    yield host
    host.stop()


def plan(layout: str, *, repeats: int = 1, **factors: str) -> PlanDocument:
    part = Part(name="main", factors={**SMALL, "layout": layout, **factors})
    return PlanDocument(title="Layouts", parts=(part,), repeats=repeats)


MIRROR, ALONE = "2 drives / btrfs raid1", "single / ext4"


def of_two_layouts(**factors: str) -> PlanDocument:
    """`first` on the mirror of two drives, `second` on one drive: each by itself, and both at once."""
    given = {**SMALL, "streams": "alone, together", "streams_on": "each", **factors}
    streams = (
        PartStream(name="first", factors={"layout": MIRROR, "pattern": "randread"}),
        PartStream(name="second", factors={"layout": ALONE, "pattern": "randwrite"}),
    )
    return PlanDocument(title="Two", parts=(Part(name="main", factors=given, streams=streams),), repeats=1)


def serials(drives: list[tuple[str, Path]]) -> list[str]:
    return [f"loop:{file}" for _, file in drives]


def assert_blank(drives: list[tuple[str, Path]]) -> None:
    assert [str(steps.read_content(device)) for device, _ in drives if not steps.read_content(device).blank] == []
    assert not TargetLock.objects.exists()
    mounts = subprocess.run(["mount"], capture_output=True, text=True, check=True).stdout
    own = str(drives[0][1].parents[1])  # of this process's tests; an interrupted test may have left other mounts
    assert not [line for line in mounts.splitlines() if own in line and "/layouts/" in line]


def built(run: Run) -> list[tuple[str, str]]:
    """What was asked for and observed, each once in the order of its first building."""
    changes = SettingChange.objects.filter(attempt__run=run, name="layout", restoring=False).order_by("at", "pk")
    return list(dict.fromkeys(changes.values_list("asked", "observed")))


def put_back(run: Run) -> list[bool]:
    changes = SettingChange.objects.filter(attempt__run=run, name="layout", restoring=True)
    return list(changes.values_list("restored", flat=True))


def test_it_measures_on_each_layout_and_leaves_blank_drives(
    system: System, racked: StorageHost, drives: list[tuple[str, Path]]
) -> None:
    lines = ["single share 80%", "single / xfs noatime nodiratime", "single / ext4", "2 drives / btrfs raid1"]
    document = plan(", ".join(lines), iodepth="1", pattern="randread, randwrite", scheduler="none")
    run = system.start_run(document, racked.target("rack"), armed=serials(drives))
    system.until_ended(run, limit_s=120)

    trials = list(run.trials.all())
    assert run.state == RunState.DONE, [(t.state, t.reason_code, t.reason) for t in trials]
    assert [t.state for t in trials] == ["done"] * 8
    order = [t.point["layout"] for t in trials]
    assert [order[n] for n in (0, 2, 4, 6)] == [order[n] for n in (1, 3, 5, 7)]  # each built once
    assert sorted(order) == sorted(lines * 2)
    assert sorted(asked for asked, _ in built(run)) == sorted(lines)
    assert all(asked == observed for asked, observed in built(run))
    assert put_back(run) == [True] * 4
    results = Result.objects.filter(run=run).select_related("stream_run__configuration")
    assert {result.point["layout"] for result in results} == set(lines)
    seen = {
        observed.facts["layout"]: observed.facts for r in results if (observed := known(r.stream_run).configuration)
    }
    assert "noatime,nodiratime" in seen["single / xfs noatime nodiratime"]["stream.0.file_system.options"]
    assert seen["2 drives / btrfs raid1"]["stream.0.file_system"] == "btrfs"
    assert_blank(drives)


def test_it_measures_layouts_on_several_pools_at_once(
    system: System, racked: StorageHost, drives: list[tuple[str, Path]]
) -> None:
    document = plan("single / ext4", at_once="1, 2")
    run = system.start_run(document, racked.target("front"), racked.target("back"), armed=serials(drives))
    system.until_ended(run, limit_s=120)

    trials = list(run.trials.all())
    assert [t.state for t in trials] == ["done"] * 3, [(t.state, t.reason_code, t.reason) for t in trials]
    (pair,) = Result.objects.filter(run=run, point__at_once=2).select_related("stream_run__configuration")
    assert pair.point["layout"] == "single / ext4"
    seen = known(known(pair.stream_run).configuration).facts
    assert [seen[f"stream.{number}.file_system"] for number in (0, 1)] == ["ext4", "ext4"]
    assert seen["layout"] == "single / ext4"
    assert_blank(drives)


def test_it_measures_two_different_layouts_at_once(
    system: System, racked: StorageHost, drives: list[tuple[str, Path]]
) -> None:
    run = system.start_run(of_two_layouts(), racked.target("rack"), racked.target("third"), armed=serials(drives))
    system.until_ended(run, limit_s=200)

    trials = list(run.trials.all())
    assert [t.state for t in trials] == ["done"] * 3, [(t.state, t.reason_code, t.reason) for t in trials]
    assert sorted(built(run)) == [(MIRROR, MIRROR), (ALONE, ALONE)]
    rows = read_rows(Result.objects.filter(run=run))
    of_streams = {(row.stream, row.layout, row.target) for row in rows}
    assert of_streams == {("first", MIRROR, "rack"), ("second", ALONE, "third")}
    assert len(rows) == 4
    assert_blank(drives)

    client = Client()
    client.force_login(operator())
    compared = client.get(f"/explore.csv?run={run.number}&x=beside&series=layout&metric=iops")
    lines = compared.getvalue().decode().splitlines()
    assert {line for line in (MIRROR, ALONE) if any(line in row for row in lines)} == {MIRROR, ALONE}
    assert MIRROR in client.get(f"/runs/{run.number}/").content.decode()
    together = run.trials.get(point__streams="first + second")
    page = client.get(f"/runs/{run.number}/trials/{together.number}/").content.decode()
    assert MIRROR in page
    assert ALONE in page
    products = urlencode([("product", f"layout:{line}") for line in (MIRROR, ALONE)])
    page = client.get(f"/bench/?{products}", follow=True).content.decode()
    assert MIRROR in page
    assert ALONE in page


def test_a_worker_killed_while_it_builds_the_second_layout_leaves_blank_drives(
    system: System, racked: StorageHost, drives: list[tuple[str, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mkfs of the second one has ended, but its command has not."""
    reached, programs = tmp_path / "reached", tmp_path / "programs"
    programs.mkdir()
    slow = programs / "mkfs.ext4"
    slow.write_text(f'#!/bin/sh\n{shutil.which("mkfs.ext4")} "$@"\ntouch {reached}\nsleep 600\n')  # until it is killed
    slow.chmod(0o755)
    racked.kill()
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        racked.start()
    document = of_two_layouts(streams="together", runtime="60s")
    run = system.start_run(document, racked.target("rack"), racked.target("third"), armed=serials(drives))
    system.until(reached.exists, limit_s=60, what="the second layout is half built")
    racked.kill()
    assert not [device for device, _ in drives if steps.read_content(device).blank]
    racked.start()
    system.until_ended(run, limit_s=90)
    trial = run.trials.get()
    assert (trial.state, trial.reason_code) == ("failed", "worker_died")
    assert put_back(run) == [True, True]
    assert_blank(drives)


def test_it_starts_nothing_before_every_drive_of_a_layout_is_armed(
    system: System, racked: StorageHost, drives: list[tuple[str, Path]]
) -> None:
    from webapp.runs.services import StartRefused

    with pytest.raises(StartRefused, match=r"loop:.*drive1\.img for racked\d+/d1") as refused:
        system.start_run(plan("2 drives / btrfs"), racked.target("rack"), armed=serials(drives)[:1])
    assert refused.value.code == "not_armed"
    with pytest.raises(StartRefused, match=r"takes 3 drives; the pool racked\d+/rack has 2"):
        system.start_run(plan("3 drives / btrfs"), racked.target("rack"), armed=serials(drives))


def test_a_cancelled_run_leaves_blank_drives(
    system: System, racked: StorageHost, drives: list[tuple[str, Path]]
) -> None:
    run = system.start_run(plan("single / ext4", runtime="60s"), racked.target("rack"), armed=serials(drives))
    system.until(lambda: run.attempts.filter(started_at__isnull=False).exists(), limit_s=40, what="fio runs")
    assert TargetLock.objects.exists()
    cancel_run(run=run, by=None)
    system.until_ended(run, limit_s=40)
    assert run.state == RunState.CANCELLED
    assert_blank(drives)


def test_a_killed_worker_leaves_blank_drives_once_it_is_started_again(
    system: System, racked: StorageHost, drives: list[tuple[str, Path]]
) -> None:
    run = system.start_run(plan("single / ext4", runtime="60s"), racked.target("rack"), armed=serials(drives))
    system.until(lambda: run.attempts.filter(started_at__isnull=False).exists(), limit_s=40, what="fio runs")
    racked.kill()
    assert not steps.read_content(drives[0][0]).blank
    racked.start()
    system.until_ended(run, limit_s=60)
    trial = run.trials.get()
    assert (trial.state, trial.reason_code) == ("failed", "worker_died")
    assert_blank(drives)
