"""Which layouts of earlier trials are used again, on an emulated sysfs."""

from pathlib import Path

import pytest

from worker.contract.workload import TargetKind
from worker.journal import Journal, LayoutDrive, LayoutRecord
from worker.kernel import sysfs
from worker.layouts import building
from worker.layouts.taking_down import DrivesNow
from worker.policy import PolicyEntry
from worker.recipes.layouts.commands import Drive
from worker.recipes.layouts.text import parse

RECORD = LayoutRecord(
    key="t1", run="r1", line="raid1 x2", mount_point="",
    drives=(LayoutDrive("wwn-1", "S1", "/dev/sdx"), LayoutDrive("wwn-2", "S2", "/dev/sdy")),
)  # fmt: skip
ENTRIES = [
    PolicyEntry(id=each.stable_id, kind=TargetKind.BLOCK, path=each.path, stable_id=each.stable_id, serial=each.serial)
    for each in RECORD.drives
]


@pytest.mark.parametrize(
    ("degraded", "action", "used"), [("0", "idle", True), ("1", "idle", False), ("0", "check", False)]
)
def test_an_array_is_used_again_only_with_all_members_and_at_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, degraded: str, action: str, *, used: bool
) -> None:
    """A member that failed in an earlier trial would otherwise make all later ones slower, without a word."""
    array = tmp_path / "md127"
    array.touch()
    now = DrivesNow((Drive("/dev/sdx", 1), Drive("/dev/sdy", 1)), ("sdx", "sdy"))
    monkeypatch.setattr(building, "drives_now", lambda _layout, _record: now)
    monkeypatch.setattr(building, "top_path", lambda *_: str(array))
    monkeypatch.setattr(building, "array_paths", lambda *_: (str(array),))
    state = {"md/degraded": degraded, "md/sync_action": action}
    monkeypatch.setattr(sysfs, "attribute", lambda name, path: state[path] if name == "md127" else "")
    journal = Journal(tmp_path / "journal.db")
    journal.save_layout(RECORD)
    found = building.existing_layout(parse(RECORD.line), ENTRIES, run="r1", journal=journal)
    assert (found is not None) is used
