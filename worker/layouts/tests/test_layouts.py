"""Real layouts on real loop devices. What this kernel or host lacks (md, LVM, a mkfs) is left out by name."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.journal import Journal, LayoutRecord
from worker.kernel import sysfs, usage
from worker.layouts import building, steps, taking_down
from worker.layouts.steps import LayoutFailed
from worker.layouts.taking_down import _arrays_called, array_name
from worker.layouts.tests.rack import DRIVES, Rack, need, racked
from worker.link.targets import report_targets
from worker.process.run import ToolOutput
from worker.recipes.layouts.commands import Step
from worker.recipes.layouts.text import parse

pytestmark = rig.needs_root


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with racked(tmp_path) as made:
        yield made


LINES = [
    "single",
    "single / ext4 noatime data=writeback",
    "single / xfs noatime nodiratime logbsize=256k discard",
    "single share 80% / ext4",
    "single / jfs",
    "single / f2fs",
    "4 drives / btrfs raid10",
    "2 drives / btrfs raid0 nodatacow",
    "raid0 x4 chunk 64k",
    "raid0 x4 chunk 64k / xfs",
    "raid1 x2 / ext4",
    "raid5 x3 chunk 64k / xfs",
    "raid6 x4 chunk 64k",
    "raid10 x4 chunk 64k share 50% / ext4",
    "4 drives / lvm stripe 64k / xfs",
    "2 arrays of raid0 x2 chunk 64k / lvm stripe 128k / jfs",
    "2 arrays of raid1 x2 / md chunk 64k / ext4",
]


@pytest.mark.parametrize("line", LINES)
def test_it_builds_uses_and_takes_down(rack: Rack, line: str) -> None:
    need(line)
    built = rack.build(line)
    if built.mount_point:
        assert Path(built.mount_point, "file").write_bytes(b"x" * rig.MIB) == rig.MIB
        kinds = {mount.kind for _device, mount in usage.read_usage().mounts if mount.point == built.mount_point}
        assert kinds == {parse(line).file_system.value}
    else:
        rig.run("dd", "if=/dev/urandom", f"of={built.device}", "bs=1M", "count=8", "conv=fsync")
    found = building.read_back(parse(line), built)
    rack.take_down(built)
    assert (found.wrong, building.existing_layout(parse(line), (), run="r1", journal=rack.journal)) == ((), None)
    assert found.words.startswith(line)
    rack.assert_blank()


def test_it_keeps_a_layout_that_this_version_does_not_understand(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.save_layout(LayoutRecord(key="t1", run="r1", line="raid9 x2", drives=(), mount_point=""))
    (told,) = building.restore(journal.layouts(), state=tmp_path, journal=journal)
    assert (told.restored, "does not understand layout t1 (`raid9 x2`)" in told.note) == (False, True)
    assert len(journal.layouts()) == 1


def test_it_tells_both_ends_of_what_a_program_says(tmp_path: Path) -> None:
    script = "echo too small >&2; seq 9999 >&2; echo its options >&2; exit 3"
    with pytest.raises(LayoutFailed, match=r"(?s)with status 3: too small.*its options$") as caught:
        steps.run(Step("try", ("sh", "-c", script)), state=tmp_path)
    assert len(caught.value.message) < 1200


def test_it_gives_md_and_lvm_the_starts_and_sizes_that_were_computed(rack: Rack) -> None:
    line = "2 arrays of raid0 x2 chunk 64k / lvm stripe 128k"
    need(line)
    built = rack.build(line)
    try:
        starts = rig.run("pvs", "--noheadings", "--units", "b", "--nosuffix", "--options", "pe_start").split()
        stripes = rig.run("lvs", "--noheadings", "--units", "k", "--options", "stripes,stripe_size", "sweetspot-t1")
        detail = rig.run("mdadm", "--examine", rack.devices[0])
    finally:
        rack.take_down(built)
    assert set(starts) == {str(rig.MIB)}  # the first multiple of 128 KiB behind LVM's metadata
    assert stripes.split() == ["2", "128.00k"]
    assert "Data Offset : 2048 sectors" in detail
    assert "Chunk Size : 64K" in detail


def test_it_tells_xfs_what_it_lies_on(rack: Rack) -> None:
    line = "raid0 x4 chunk 64k / xfs"
    need(line)
    built = rack.build(line)
    try:
        told = rig.run("xfs_info", built.mount_point)
    finally:
        rack.take_down(built)
    assert "sunit=16     swidth=64 blks" in told  # 64 KiB and 256 KiB in blocks of 4 KiB


def test_it_takes_down_what_a_killed_worker_left(rack: Rack) -> None:
    rack.build("single / ext4")
    again = Journal(rack.state / "journal.db")
    assert [record.line for record in again.layouts("r1")] == ["single / ext4"]
    assert all(item.restored for item in building.restore(again.layouts(), state=rack.state, journal=again))
    rack.assert_blank()


def test_it_leaves_blank_drives_where_a_command_fails(rack: Rack) -> None:
    """XFS makes nothing on a drive this small; what lay there before is gone, which is what arming was for."""
    with rack.files[0].open("wb") as file:
        file.truncate(8 * rig.MIB)
    rig.run("losetup", "--set-capacity", rack.devices[0])
    with pytest.raises(LayoutFailed, match=r"mkfs.xfs .* ended with status 1"):
        rack.build("single / xfs")
    rack.assert_blank()


def test_it_leaves_alone_what_somebody_took_into_use(rack: Rack) -> None:
    built = rack.build("single / ext4")
    rig.unmount(built.mount_point)
    rig.run("mkfs.ext4", "-q", "-F", "-L", "precious", rack.devices[0])
    with pytest.raises(LayoutFailed, match="contains ext4 precious") as failure:
        rack.take_down(built)
    assert failure.value.code == "layout_foreign"
    assert steps.read_content(rack.devices[0]).label == "precious"
    assert rack.journal.layouts() == (built.record,)


def test_it_holds_every_drive_until_the_command_that_needs_it(rack: Rack, tmp_path: Path) -> None:
    """Nobody can mount the last drive while the first is wiped, or any drive between two commands."""
    line, point = "2 drives / btrfs raid0", tmp_path / "point"
    for device in rack.devices[:2]:
        rig.run("mkfs.ext4", "-q", "-F", device)
    rack.allow("ext4")
    point.mkdir()
    mounted = []

    def mount() -> None:
        for device in rack.devices[:2]:
            said = subprocess.run(["mount", device, str(point)], capture_output=True, text=True, check=False)
            mounted.append((said.returncode, "already mounted or mount point busy" in said.stderr))

    built = rack.build(line, go_on=mount)
    assert mounted == [(32, True)] * 8  # wipe, wipe, mkfs, mount
    rack.take_down(built)
    rack.assert_blank()


def test_it_takes_nothing_from_a_drive_that_another_program_opens_between_two_commands(rack: Rack) -> None:
    """The drive is handed over for one command; whoever takes it then keeps it, and the layout fails by name."""
    with ExitStack() as others:

        def run(step: Step, **places: Any) -> str:
            if step.argv[0] == "mkfs.ext4":
                others.callback(os.close, os.open(rack.devices[0], os.O_RDWR | os.O_EXCL))
            return real(step, **places)

        real = steps.run
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(steps, "run", run)
            patched.setattr("worker.guard.openers.BUSY_LIMIT_S", 0.5)
            with pytest.raises(LayoutFailed, match=r"mkfs\.ext4"):
                rack.build("single / ext4")
        (record,) = rack.journal.layouts()
    taking_down.take_down(record, state=rack.state, journal=rack.journal)
    rack.assert_blank()


def test_it_waits_for_a_drive_that_is_busy_when_its_layout_is_taken_down(rack: Rack) -> None:
    device = rack.devices[0]
    fd = os.open(device, os.O_RDONLY | os.O_EXCL)
    timer = threading.Timer(0.6, os.close, (fd,))
    timer.start()
    with steps.held_exclusively(device), pytest.raises(OSError, match="busy"):
        os.open(device, os.O_RDONLY | os.O_EXCL)
    timer.join()


@pytest.mark.parametrize("is_loop", [True, False])
def test_it_wipes_nothing_on_a_drive_that_somebody_uses(
    rack: Rack, is_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.guard.openers.BUSY_LIMIT_S", 0.3)
    device = rack.devices[0]
    with ExitStack() as users:
        if is_loop:
            users.enter_context(rig.loop(Path(device)))
        else:
            users.callback(os.close, os.open(device, os.O_RDONLY | os.O_EXCL))
        with pytest.raises(LayoutFailed) as failure, steps.held_exclusively(device):
            pass
        assert failure.value.code == "layout_held"


def test_it_wipes_a_partition_table(rack: Rack) -> None:
    rig.run("sfdisk", "--quiet", "--label", "gpt", rack.devices[0], given="size=32M\nsize=32M\n")
    with pytest.raises(GuardRefused) as refused:
        rack.build("single / ext4")
    assert refused.value.code == "guard_signature"
    rack.allow("gpt", "PMBR")
    rack.take_down(rack.build("single / ext4"))
    rack.assert_blank()


def test_its_own_layouts_leave_nothing_that_locks_it_out(rack: Rack) -> None:
    """Also one that was given up in the middle: `destroy = true` without any name is enough for the next one."""

    def give_up() -> None:
        if sysfs.partitions(Path(rack.devices[0]).name):
            raise RuntimeError

    rack.take_down(rack.build("single share 80% / ext4"))
    with pytest.raises(RuntimeError):
        rack.build("single share 80% / ext4", go_on=give_up)
    rack.take_down(rack.build("single / ext4"))
    rack.assert_blank()


def test_it_does_not_take_down_what_is_in_use(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.layouts.taking_down.UNMOUNT_LIMIT_S", 0.5)
    built = rack.build("single / ext4")
    with (Path(built.mount_point) / "open").open("w"), pytest.raises(LayoutFailed) as failure:
        rack.take_down(built)
    assert failure.value.code == "layout_held"
    rack.take_down(built)
    rack.assert_blank()


def test_it_says_that_a_drive_is_gone(rack: Rack, tmp_path: Path) -> None:
    record = rack.build("single / ext4").record
    rig.unmount(record.mount_point)
    rig.detach(rack.devices[0])
    with pytest.raises(LayoutFailed, match="connect it again") as failure:
        taking_down.take_down(record, state=rack.state, journal=rack.journal)
    assert failure.value.code == "layout_gone"
    rig.run("losetup", "--partscan", rack.devices[0], str(rack.files[0]))
    taking_down.take_down(record, state=rack.state, journal=rack.journal)
    rack.assert_blank()


def test_it_builds_on_nothing_that_is_not_armed_or_allowed_or_free(rack: Rack, tmp_path: Path) -> None:
    with pytest.raises(GuardRefused) as refused:
        rack.build("single / ext4", armed=())
    assert refused.value.code == "guard_not_armed"
    with rig.loop(rig.sparse(tmp_path / "kept.img")) as kept:
        allowed = rig.load(tmp_path, rig.block(kept, tmp_path / "kept.img"))
        with pytest.raises(GuardRefused) as refused:
            building.build(
                parse("single / ext4"), allowed.targets, (f"loop:{tmp_path}/kept.img",),
                allowed=allowed, key="t2", run="r1", state=rack.state, journal=rack.journal,
            )  # fmt: skip
        assert refused.value.code == "guard_not_destroyable"
    with rig.mounted(rack.devices[0], tmp_path / "point"), pytest.raises(GuardRefused) as refused:
        rack.build("single / ext4")
    assert refused.value.code == "guard_mounted"
    with pytest.raises(LayoutFailed, match="needs 2 drives, but 1 were given"):
        building.build(
            parse("2 drives / btrfs raid0"), rack.policy.targets[:1], rack.armed,
            allowed=rack.policy, key="t2", run="r1", state=rack.state, journal=rack.journal,
        )  # fmt: skip
    with pytest.raises(GuardRefused, match="listed twice"):
        building.build(
            parse("2 drives / btrfs raid0"), rack.policy.targets[:1] * 2, rack.armed,
            allowed=rack.policy, key="t2", run="r1", state=rack.state, journal=rack.journal,
        )  # fmt: skip
    assert rack.journal.layouts() == ()


def test_it_reads_a_journal_from_before_there_were_layouts(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "journal.db"
    Journal(path).close()
    with sqlite3.connect(path) as db:
        db.executescript(
            "alter table attempts rename column started_at to begun_at; "
            "alter table baselines rename column requested to wished; "
            "alter table attempts drop column issued_at; "
            "drop table layouts; drop table passwords; drop table folders; pragma user_version=1;"
        )
    assert Journal(path).layouts() == ()
    assert Journal(path).baselines() == ()


def test_its_policy_is_read_as_any_other(rack: Rack) -> None:
    assert [target.present for target in report_targets(rack.policy)] == [True] * (DRIVES + 2)  # and the two pools


def test_it_builds_and_takes_down_from_the_command_line(rack: Rack, capsys: pytest.CaptureFixture[str]) -> None:
    from worker.cli import main

    options = ["--state", str(rack.state), "--policy", str(rack.folder / "policy.toml")]
    assert main([*options, "layout", "single / ext4", "--build", "d0"]) == 1
    assert "is not armed" in capsys.readouterr().err
    assert main([*options, "layout", "single / ext4", "--build", "d0", "--arm", rack.armed[0]]) == 0
    point, words = capsys.readouterr().out.splitlines()
    assert Path(point).is_mount()
    (record,) = rack.journal.layouts()
    assert words == f"To take it down: sweetspot-worker restore --layout {record.key}"
    assert main([*options, "restore", "--yes", "--layout", record.key]) == 0
    assert "layout of" in capsys.readouterr().out
    rack.assert_blank()


def test_it_restores_what_runs_left_and_keeps_what_was_built_by_hand(
    rack: Rack, capsys: pytest.CaptureFixture[str]
) -> None:
    from worker.cli import main

    options = ["--state", str(rack.state), "--policy", str(rack.folder / "policy.toml")]
    main([*options, "layout", "single / ext4", "--build", "d1", "--arm", rack.armed[1]])
    (by_hand,) = rack.journal.layouts()
    rack.build("single / ext4")
    capsys.readouterr()
    assert main([*options, "restore", "--yes"]) == 0
    assert f"Layout {by_hand.key} (single / ext4) was built by hand and is kept" in capsys.readouterr().out
    assert (rack.journal.layouts(), Path(by_hand.mount_point).is_mount()) == ((by_hand,), True)
    assert main([*options, "restore", "--json"]) == 0
    told = capsys.readouterr()
    assert (told.out, by_hand.key in told.err) == ("[]\n", True)
    assert main([*options, "restore", "--layout", "ffffff"]) == 2
    assert f"Layouts here: {by_hand.key} (single / ext4)" in capsys.readouterr().err
    assert main([*options, "restore", "--yes", "--layout", by_hand.key]) == 0
    rack.assert_blank()


def test_a_command_may_take_hours_and_is_stopped_when_asked(tmp_path: Path) -> None:
    assert steps.LIMIT_S >= 8 * 3600, "mkfs on a large array of slow drives"
    began = time.monotonic()

    class Stopped(Exception):
        pass

    def stop_if_asked() -> None:
        if time.monotonic() - began > 0.5:
            raise Stopped

    with pytest.raises(Stopped):
        steps.run(Step("wait", ("sleep", "60")), state=tmp_path, stop_if_asked=stop_if_asked)
    assert time.monotonic() - began < 20
    assert list((tmp_path / "scopes").iterdir()) == []


# Of `mdadm --detail --export` (mdadm 4.2), shortened.
EXPORT = "MD_LEVEL=raid0\nMD_DEVICES=2\nMD_METADATA=1.2\nMD_UUID=c2bb0f9e:1\nMD_DEVNAME=127\nMD_NAME={name}\n"


@pytest.mark.parametrize("host", ["", "store1:"])
def test_the_name_of_an_array_is_not_a_prefix_of_another_one(host: str) -> None:
    assert array_name(EXPORT.format(name=f"{host}sweetspot-t1-1")) == "sweetspot-t1-1"
    assert array_name(EXPORT.format(name=f"{host}sweetspot-t1-10")) == "sweetspot-t1-10"
    assert array_name("") == ""


def test_only_the_array_with_the_exact_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a reboot, arrays have other kernel names."""
    names = {"/dev/md126": "sweetspot-t1-10", "/dev/md127": "sweetspot-t1-1"}
    monkeypatch.setattr("worker.layouts.taking_down.sysfs.names", lambda: ["sda", "md126", "md127"])
    monkeypatch.setattr(
        "worker.layouts.taking_down.ask",
        lambda *command: ToolOutput(0, EXPORT.format(name=f"h:{names[command[-1]]}"), ""),
    )
    assert list(_arrays_called("sweetspot-t1-1")) == ["/dev/md127"]
