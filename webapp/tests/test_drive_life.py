"""A loop device through its life: purged by hand, filled and purged again by a plan, its state told with results."""

import os
from pathlib import Path

import pytest

from webapp.plans.document import Order, Part, PlanDocument
from webapp.results.models import Result
from webapp.results.reading.rows import read_rows
from webapp.runs.actions.host_actions import purge_drive, set_by_hand, setting_by_hand
from webapp.runs.models import HostAction, Run, RunState
from webapp.tests.drives import MIB, loop_device
from webapp.tests.system import StorageHost, System

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root"),
]
BLOCK = """
[[target]]
id = "drive"
kind = "block"
path = "{path}"
stable_id = "loop:{image}"
destroy = true
settings = ["*"]
"""
SIZE = 64 * MIB


def ended(system: System, action: HostAction) -> HostAction:
    def over() -> bool:
        action.attempt.refresh_from_db()
        return action.attempt.ended_at is not None

    system.until(over, limit_s=60, what="the action ends")
    return action


def states(
    system: System, storage: StorageHost, *factors: dict[str, str], before: tuple[str, ...] = (), repeats: int = 1
) -> list[str]:
    """What the drive was before each trial of a plan of these parts."""
    parts = tuple(Part(name=f"part {number}", factors=one, before=before) for number, one in enumerate(factors))
    plan = PlanDocument(
        title=f"Drive life {Run.objects.count()}", parts=parts, repeats=repeats, order=Order.LISTED,
        common={"block_size": "1M", "ioengine": "psync"},
    )  # fmt: skip
    drive = storage.target("drive")
    run = system.until_ended(system.start_run(plan, drive, armed=[drive.arming_serial]), limit_s=120)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    found = read_rows(Result.objects.filter(run=run).order_by("trial__index"))
    return [result.drive_state for result in found]


def test_a_drive_is_purged_filled_and_purged_again(system: System, tmp_path: Path) -> None:
    with loop_device(tmp_path, "drive", size_bytes=SIZE) as device:
        image = tmp_path / "drive.img"
        image.write_bytes(os.urandom(MIB) * 64)
        storage = system.add_host("storage1", BLOCK.format(path=device, image=image))
        drive = storage.target("drive")
        assert drive.purges == [{"method": "discard", "problem": ""}]
        action = purge_drive(target=drive, method="discard", serial=drive.arming_serial, why="", by=None)
        ended(system, action)
        assert (action.attempt.state, action.attempt.outcome) == ("done", "")
        assert action.attempt.purged[0]["samples_not_zero"] == 0
        assert image.stat().st_blocks == 0

        write = {"pattern": "write", "amount": "64M"}
        some = {"pattern": "randwrite", "amount": "8M"}
        read = {"pattern": "randread", "amount": "8M"}
        found = states(system, storage, write, some, read, some | {"purge": "discard"})
        assert found == ["purged", "sequentially filled", "used", "purged"]
        once = ("once purge discard", "once write 1x sequential 1M", "flush")
        assert states(system, storage, some, before=once, repeats=2) == ["sequentially filled", "used"]
        with open(device, "r+b", buffering=0) as somebody:  # noqa: PTH123 - a device
            somebody.write(b"x" * 4096)
            os.fsync(somebody.fileno())
        assert states(system, storage, some) == ["unknown"]

        made = setting_by_hand(target=drive, name="read_ahead_kb", operation="set", value="64", by=None)
        assert ended(system, made).attempt.state == "done", made.attempt.outcome
        queue = Path("/sys/block") / Path(device).name / "queue/read_ahead_kb"
        assert queue.read_text().strip() == "64"
        assert states(system, storage, read | {"read_ahead_kb": "256"}) == ["unknown"]
        assert queue.read_text().strip() == "64", "a run puts back what it found"
        before = made.attempt.setting_changes.get().before
        ended(system, setting_by_hand(target=drive, name="read_ahead_kb", operation="restore", by=None))
        assert queue.read_text().strip() == before
        assert set_by_hand(drive) == []
        storage.stop()
