"""The order of the steps that replace a member, and the journal. `make lab ARGS=rebuild` does it on real arrays."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from worker.contract.workload import TargetKind
from worker.journal import Journal, LayoutDrive, LayoutRecord
from worker.kernel import sysfs
from worker.kernel.targets import LayoutArray
from worker.layouts import building, steps, taking_down
from worker.layouts.steps import Built, Content, LayoutFailed
from worker.layouts.taking_down import DrivesNow, array_of
from worker.policy import PolicyEntry
from worker.recipes.layouts.commands import Drive, Step
from worker.recipes.layouts.text import parse

RECORD = LayoutRecord(
    key="t1", run="r1", line="raid1 x2 share 50%", mount_point="",
    drives=(LayoutDrive("wwn-1", "S1", "/dev/sdx"), LayoutDrive("wwn-2", "S2", "/dev/sdy")),
)  # fmt: skip
ARRAY, MEMBER = "/dev/md/sweetspot-t1-0", "/dev/sdz1"  # the second drive has another name now
OURS = Content(kind="linux_raid_member", label="any:sweetspot-t1-0")


class Host:
    """Commands are recorded; each one may fail some times before it works."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.done: list[str] = []
        self.altered: list[bool] = []  # according to the journal, at each command
        self.content = OURS
        self.failures = 0

    def run(self, step: Step, **_: object) -> str:
        self.altered.append(self.journal.layouts()[0].altered)
        if step.argv[0] != "udevadm":
            self.done.append(" ".join(step.argv[2:]))
        if "--remove" in step.argv and self.failures:
            self.failures -= 1
            raise LayoutFailed("layout_refused", "Device or resource busy")
        return ""

    def wipe(self, path: str, _fd: int, **_: object) -> None:
        self.done.append(f"wipe {path}")
        self.content = Content()

    @contextmanager
    def held(self, path: str) -> Iterator[int]:
        self.done.append(f"hold {path}")
        yield 3


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    journal = Journal(tmp_path / "journal.db")
    journal.save_layout(RECORD)
    made = Host(journal)
    now = DrivesNow((Drive("/dev/sdx", 1), Drive("/dev/sdz", 1)), ("sdx", "sdz"))
    monkeypatch.setattr(taking_down, "drives_now", lambda _layout, _record: now)
    monkeypatch.setattr(sysfs, "slaves", lambda _name: ("sdx1", "sdz1"))
    monkeypatch.setattr(steps, "read_content", lambda _path: made.content)
    monkeypatch.setattr(steps, "run", made.run)
    monkeypatch.setattr(steps, "held_exclusively", made.held)
    monkeypatch.setattr(steps, "wipe", made.wipe)
    return made


def array(host: Host) -> LayoutArray:
    return array_of(RECORD, state=host.journal.folder, journal=host.journal)


def test_the_last_member_is_removed_erased_while_held_and_added(host: Host) -> None:
    found = array(host)
    found.remove_member()
    found.add_member()
    assert host.done == [
        f"{ARRAY} --fail {MEMBER}", f"{ARRAY} --remove {MEMBER}", f"hold {MEMBER}", f"wipe {MEMBER}",
        f"{ARRAY} --add {MEMBER}",
    ]  # fmt: skip
    assert all(host.altered), "the journal knows it before the first command"


def test_a_busy_member_is_removed_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking_down, "_AGAIN_S", 0)
    host.failures = 2
    array(host).remove_member()
    assert host.done.count(f"{ARRAY} --remove {MEMBER}") == 3


@pytest.mark.parametrize("content", [Content(), Content(kind="linux_raid_member", label="any:other"), Content("ext4")])
def test_a_drive_that_is_no_member_of_the_layout_is_not_changed(host: Host, content: Content) -> None:
    host.content = content
    with pytest.raises(LayoutFailed, match="is not a member of the array of layout t1"):
        array(host).remove_member()
    assert (host.done, host.journal.layouts()) == ([], (RECORD,))


def test_a_drive_that_someone_else_used_meanwhile_is_not_added(host: Host) -> None:
    array(host).remove_member()
    host.content = Content(kind="ext4", label="other")
    with pytest.raises(LayoutFailed, match=f"{MEMBER} was erased, but now contains ext4 other"):
        array(host).add_member()
    assert not any("--add" in line for line in host.done)


def test_an_altered_layout_is_not_used_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        PolicyEntry(
            id=each.stable_id, kind=TargetKind.BLOCK, path=each.path, stable_id=each.stable_id, serial=each.serial
        )
        for each in RECORD.drives
    ]
    monkeypatch.setattr(building, "_whole", lambda _layout, record: Built(record, "/dev/md127", "", ()))
    assert building.existing_layout(parse(RECORD.line), entries, run="r1", journal=host.journal)
    array(host).remove_member()
    assert building.existing_layout(parse(RECORD.line), entries, run="r1", journal=host.journal) is None
