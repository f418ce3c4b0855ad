"""Numbers against ground truth: loop devices that the kernel's throttle holds to a known speed."""

import os
import secrets
from pathlib import Path

import pytest

from webapp.analysis.searching import searches_of
from webapp.core.statistics import mean_of
from webapp.plans.document import Part, PlanDocument
from webapp.plans.load import MAX, asked_iops, fio_workload
from webapp.results.models import Result, known
from webapp.runs.models import RunState
from webapp.tests.drives import loop_device, throttle
from webapp.tests.system import System

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.alone,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and throttles need root"),
]

BLOCK = """
[[target]]
id = "{id}"
kind = "block"
path = "{path}"
stable_id = "loop:{image}"
destroy = true
"""
SPEEDS = {"slow": 500, "middle": 3000, "fast": 5000}  # IOPS
WITHIN = 0.02


def test_it_measures_drives_of_known_speed_within_2_percent(system: System, tmp_path: Path) -> None:
    plan = PlanDocument(
        title="Known speeds",
        parts=(
            Part(name="read", factors={"pattern": "randread", "iodepth": "16"}),
            Part(name="write", factors={"pattern": "randwrite", "iodepth": "16"}),
        ),
        # The throttle gives out I/Os in slices of 0.1 s: over 6 s, one slice more or less is 1.7 %.
        common={"block_size": "4k", "runtime": "6s", "ramp": "1s"},
        repeats=1,
    )
    with (
        throttle(f"sweetspot-test-{secrets.token_hex(4)}") as limits,
        loop_device(tmp_path, "slow") as slow,
        loop_device(tmp_path, "middle") as middle,
        loop_device(tmp_path, "fast") as fast,
    ):
        devices = {"slow": slow, "middle": middle, "fast": fast}
        for name, device in devices.items():
            limits.limit(device, iops=SPEEDS[name])
        policy = "".join(
            BLOCK.format(id=name, path=device, image=tmp_path / f"{name}.img") for name, device in devices.items()
        )
        storage = system.add_host(f"storage-{secrets.token_hex(2)}", policy, wrap=limits.command)
        targets = [storage.target(name) for name in devices]
        run = system.start_run(plan, *targets, armed=[t.arming_serial for t in targets])
        system.until_ended(run, limit_s=120)
        assert run.state == RunState.DONE, [(t.state, t.reason) for t in run.trials.all()]
        storage.stop()

    measured = {
        (known(r.target).slug, r.direction): known(r.iops)
        for r in Result.objects.filter(run=run).select_related("target")
    }
    expected = {(name, way): SPEEDS[name] for name in devices for way in ("read", "write")}
    assert measured == pytest.approx(expected, rel=WITHIN)
    for way in ("read", "write"):
        assert sorted(devices, key=lambda name: measured[name, way]) == ["slow", "middle", "fast"]


def test_the_highest_load_below_a_latency_is_searched_on_a_drive_of_known_speed(system: System, tmp_path: Path) -> None:
    plan = PlanDocument(
        title="Highest load",
        parts=(Part(name="read", factors={"load": "25%, 50%, 75%"}),),
        common={"pattern": "randread", "iodepth": "16", "block_size": "4k", "runtime": "2s", "ramp": "0s"},
        repeats=1,
        goal="highest iops where latency_p95 <= 10s",
        budget=32,
    )
    with throttle(f"sweetspot-test-{secrets.token_hex(4)}") as limits, loop_device(tmp_path, "drive") as drive:
        limits.limit(drive, iops=1000)
        policy = BLOCK.format(id="drive", path=drive, image=tmp_path / "drive.img")
        storage = system.add_host(f"storage-{secrets.token_hex(2)}", policy, wrap=limits.command)
        target = storage.target("drive")
        run = system.start_run(plan, target, armed=[target.arming_serial])
        system.until_ended(run, limit_s=240)
        assert run.state == RunState.DONE, [(t.state, t.reason) for t in run.trials.all()]
        storage.stop()
    (search,) = searches_of(run)
    assert [each.trial.point["load"] for each in search.trials[:5]] == [MAX] * 4 + [50]
    maximum = mean_of([known(each.value) for each in search.trials[:4]])
    assert maximum == pytest.approx(1000, rel=0.1)  # of trials of 2 s, in which a slice of the throttle is 5 %
    for each in search.trials[4:]:
        (work,) = map(fio_workload, each.trial.workloads)
        assert asked_iops(work) == pytest.approx(maximum * each.trial.point["load"] / 100, rel=0.02)
    # Busy cores may not keep up with a share. Then, lower ones are measured.
    bracket = known(search.bracket)
    assert sum(each.trial.is_final for each in search.trials) in (4, 8, 12)
    assert bracket.above is None or bracket.point is None or bracket.above > bracket.point
