"""Uses of a drive that an exclusive open does not find: other paths to it, openers without O_EXCL.

Trees of sysfs, /proc and configfs are built after those of real hosts where this machine has no such hardware.
"""

import fcntl
import os
import struct
from contextlib import ExitStack
from pathlib import Path

import pytest

from worker import guard
from worker.guard import blocks, openers
from worker.guard.lease import Lease
from worker.guard.protection import twins
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.guard.tests.paths import WWID, tree_with_paths
from worker.guard.tests.refused import refusal
from worker.kernel import sysfs, usage
from worker.kernel.tests.tree import Tree
from worker.policy import Policy

# ---- the same drive under two kernel names


def test_it_finds_the_other_path_to_a_drive(tmp_path: Path) -> None:
    tree = tree_with_paths(tmp_path)
    assert [twins(name, tree.sys) for name in ("sda", "sdb", "sdc")] == [("sdb",), ("sda",), ()]


def test_paths_under_multipath_are_one_device(tmp_path: Path) -> None:
    tree = tree_with_paths(tmp_path)
    tree.add("dm-0", "virtual/block", "253:0", size="4096", dm__uuid=f"mpath-3{WWID[4:]}")
    tree.put_on("dm-0", "sda")
    tree.put_on("dm-0", "sdb")
    assert twins("dm-0", tree.sys) == ()


def test_drives_without_a_world_wide_name_are_compared_by_serial_and_model(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for number, (serial, model) in enumerate(
        (("S1", "X"), ("S1", "X"), ("S2", "X"), ("S1", "Y"), ("", "X"), ("", "X"))
    ):
        facts = {"device__serial": serial, "device__model": model, "size": "4096"}
        tree.add(f"sd{'abcdef'[number]}", f"pci0/host{number}/block", f"8:{16 * number}", **facts)
    assert [twins(f"sd{letter}", tree.sys) for letter in "abcdef"] == [("sdb",), ("sda",), (), (), (), ()]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_refuses_a_drive_whose_other_path_is_mounted_and_holds_that_path_otherwise(
    allowed: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second loop device stands for the second path."""
    with rig.loop(rig.sparse(tmp_path / "other.img")) as other:
        monkeypatch.setattr(blocks, "twins", lambda _name: (Path(other).name,))
        stream = rig.stream(allowed, writes=True)
        with rig.mounted(other, tmp_path / "point"):
            refused = refusal(stream, allowed)
            assert (refused.code, other in refused.message) == ("guard_mounted", True)
            assert refused.message.partition(": ")[0].endswith(f"(also {other})")  # the name before the colon is whole
        with guard.admit(stream, allowed, (stream.target.stable_id,)), pytest.raises(OSError, match="busy"):
            os.close(os.open(other, os.O_RDONLY | os.O_EXCL))
        held = os.open(other, os.O_RDONLY | os.O_EXCL)
        assert refusal(stream, allowed).code == "guard_busy"
        os.close(held)


# ---- openers without O_EXCL


@pytest.mark.root
def test_it_refuses_a_drive_that_another_program_has_open(allowed: Policy, device: str, file: Path) -> None:
    stream = rig.stream(allowed, writes=True)
    for path in (device, str(file)):
        with rig.opened_elsewhere(path) as process:
            for each in (stream, rig.stream(allowed)):
                refused = refusal(each, allowed)
                assert (refused.code, f"(process {process})" in refused.message) == ("guard_held", True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)):
        pass


@pytest.mark.root
def test_it_waits_for_a_program_that_has_a_drive_open_for_a_moment(
    allowed: Policy, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openers, "BUSY_LIMIT_S", 10.0)
    with rig.opened_elsewhere(device, seconds=0.5), guard.admit(rig.stream(allowed), allowed, ()):
        pass


@pytest.mark.root
def test_it_refuses_a_drive_under_a_loop_device(allowed: Policy, device: str) -> None:
    """The kernel shows no holder, and the loop device does not claim the drive."""
    with rig.loop(Path(device)) as outer:
        refused = refusal(rig.stream(allowed, writes=True), allowed)
        assert (refused.code, Path(outer).name in refused.message) == ("guard_held", True)


def test_it_knows_the_character_devices_of_a_drive(tmp_path: Path) -> None:
    """A virtual machine may have /dev/sg0 or /dev/ng0n1 instead of the block device."""
    tree = Tree(tmp_path)
    tree.add("sda", "pci0/host0/block", "8:0", device__scsi_generic__sg0__dev="21:0")
    tree.add("nvme0n1", "pci0/nvme/nvme0", "259:0")
    (tree.sys / "class/nvme-generic/ng0n1").mkdir(parents=True)
    (tree.sys / "class/nvme-generic/ng0n1/dev").write_text("248:0\n")
    assert openers.device_identities("sda", tree.sys) == {("block", 8, 0), ("character", 21, 0)}
    assert openers.device_identities("nvme0n1", tree.sys) == {("block", 259, 0), ("character", 248, 0)}


def test_it_finds_targets_of_nvmet_and_lio(tmp_path: Path) -> None:
    exported = tmp_path / "image"
    exported.touch()
    for folder, name, path in (
        ("nvmet/subsystems/nqn.x/namespaces/1", "device_path", str(exported)),
        ("nvmet/subsystems/nqn.x/namespaces/2", "device_path", "/dev/gone"),
        ("target/core/fileio_0/disk", "udev_path", str(exported)),
        ("target/core/fileio_0/empty", "udev_path", ""),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_text(path + "\n")
    wanted = {openers.identity(exported.stat())}
    found = ("nvmet (nvmet/subsystems/nqn.x/namespaces/1)", "LIO (target/core/fileio_0/disk)")
    assert openers.exports(wanted, tmp_path) == found
    with pytest.raises(GuardRefused, match="LIO"):
        openers.refuse_if_opened("/dev/x", wanted, configfs=tmp_path)
    assert openers.exports({("block", 8, 0)}, tmp_path) == ()


def test_it_refuses_what_it_cannot_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(_path: object) -> object:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "4711/task/4711/fd").mkdir(parents=True)
    (tmp_path / "4711/comm").write_text("qemu-system-x86\n")
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: hidden(path) if Path(path).name == "fd" else scan(path))
    with pytest.raises(GuardRefused, match=r"qemu-system-x86 \(process 4711\) cannot be read"):
        openers.openers({("block", 8, 0)}, tmp_path)
    assert openers.openers({("block", 8, 0)}, tmp_path, strict=False) == ()  # to read a drive


# ---- image files


@pytest.mark.parametrize("kind", [fcntl.F_RDLCK, fcntl.F_WRLCK])
def test_it_refuses_to_write_an_image_that_a_virtual_machine_has_locked(
    tmp_path: Path, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU locks single bytes from offset 100 on, by open file description. A container cannot see QEMU's process."""
    image = rig.sparse(tmp_path / "vm.img")
    image.chmod(0o600)
    monkeypatch.setattr(openers, "openers", lambda *_, **_more: ())
    allowed = rig.load(tmp_path, {"id": "vm", "kind": "file", "path": str(image), "destroy": True})
    stream = rig.stream(allowed, writes=True)
    with image.open("r+b") as machine:
        lock = struct.pack("=hh4xqqi4x", kind, os.SEEK_SET, 100, 1, 0)
        fcntl.fcntl(machine, fcntl.F_OFD_SETLK, lock)
        refused = refusal(stream, allowed)
        assert (refused.code, "virtual machine" in refused.message) == ("guard_busy", True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)), image.open("r+b") as machine:
        lock = struct.pack("=hh4xqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 100, 1, 0)
        with pytest.raises(BlockingIOError):
            fcntl.fcntl(machine, fcntl.F_OFD_SETLK, lock)


# ---- the lease itself


@pytest.mark.root
def test_a_lease_hands_its_drive_over_for_one_program_only(device: str) -> None:
    with Lease(device, name=Path(device).name) as held:
        with held.handed_over():
            os.close(os.open(device, os.O_RDWR | os.O_EXCL))
        with pytest.raises(OSError, match="busy"):
            os.open(device, os.O_RDWR | os.O_EXCL)
        with pytest.raises(GuardRefused) as refused:
            _take_during_handover(held)
        assert refused.value.code == "guard_busy"
    with pytest.raises(ValueError, match="not held"):
        _ = held.fd


def _take_during_handover(held: Lease) -> None:
    """Another program takes the drive while the worker has handed it over."""
    with ExitStack() as others, pytest.MonkeyPatch.context() as patched:
        patched.setattr("worker.guard.openers.BUSY_LIMIT_S", 0.3)
        with held.handed_over():
            others.callback(os.close, os.open(held.path, os.O_RDWR | os.O_EXCL))


@pytest.mark.root
def test_a_lease_ends_for_what_was_built_on_it(device: str, tmp_path: Path) -> None:
    rig.run("mkfs.ext4", "-q", "-F", device)
    point = tmp_path / "point"
    point.mkdir()
    with Lease(device, name=Path(device).name) as held:
        with held.handed_over():
            rig.run("mount", device, str(point))
        with pytest.raises(ValueError, match="not held"):
            _ = held.fd
    assert usage.read_usage().mounts_of(Path(device).name)
    rig.unmount(point)


@pytest.mark.root
def test_a_lease_notices_that_another_drive_got_its_name(device: str, tmp_path: Path) -> None:
    def exchange(held: Lease) -> None:
        with held.handed_over():
            rig.detach(device)
            rig.run("losetup", device, str(rig.sparse(tmp_path / "other.img")))

    with Lease(device, name=Path(device).name) as held:
        assert held.stable_id == sysfs.stable_id(held.name)
        with pytest.raises(GuardRefused) as refused:
            exchange(held)
    assert refused.value.code == "guard_serial_changed"


@pytest.mark.root
@pytest.mark.parametrize("fact", ["serial", "stable_id"])
def test_the_identity_of_a_drive_is_read_again_before_each_write(
    allowed: Policy, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path, name, numbers and size are the same."""
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        place.recheck(programs=False)
        monkeypatch.setattr(sysfs, fact, lambda *_: "another drive")
        with pytest.raises(GuardRefused) as refused:
            place.recheck(programs=False)
    assert refused.value.code == "guard_serial_changed"
