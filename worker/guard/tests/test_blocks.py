import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from worker import guard
from worker.guard.tests import rig
from worker.guard.tests.refused import refusal
from worker.kernel.signatures import identity
from worker.link.targets import report_targets
from worker.policy import Policy

pytestmark = rig.needs_root


def test_it_admits_an_armed_write_and_names_the_device(allowed: Policy, device: str, file: Path) -> None:
    with guard.admit(rig.stream(allowed, writes=True), allowed, (f"loop:{file}",)) as place:
        assert (place.path, place.device, place.cwd_fd) == (device, Path(device).name, None)


def test_it_holds_the_device_so_that_nobody_can_mount_it(allowed: Policy, device: str, tmp_path: Path) -> None:
    rig.run("mkfs.ext4", "-q", "-F", device)
    (tmp_path / "point").mkdir()
    with guard.admit(rig.stream(allowed), allowed, ()):
        assert subprocess.run(["mount", device, str(tmp_path / "point")], capture_output=True, check=False).returncode
        assert refusal(rig.stream(allowed), allowed).code == "guard_busy"
    with guard.admit(rig.stream(allowed), allowed, ()):
        pass


def test_it_lets_fio_work_on_what_it_holds(allowed: Policy, device: str) -> None:
    job = ("--name=x", "--rw=randwrite", "--bs=4k", "--size=1m", "--direct=1", "--allow_file_create=0")
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        rig.run("fio", f"--filename={place.path}", *job)


def test_it_refuses_a_write_that_nobody_armed(allowed: Policy) -> None:
    stream = rig.stream(allowed, writes=True)
    assert refusal(stream, allowed, ()).code == "guard_not_armed"
    assert refusal(stream, allowed, ("loop:/another",)).code == "guard_not_armed"


def test_it_refuses_a_write_that_the_policy_does_not_allow(tmp_path: Path, device: str, file: Path) -> None:
    allowed = rig.load(tmp_path, rig.block(device, file))
    stream = rig.stream(allowed, writes=True)
    assert refusal(stream, allowed).code == "guard_not_destroyable"
    rig.run("mkfs.ext4", "-q", "-F", device)
    refused = refusal(stream, allowed)
    assert (refused.code, "ext4" in refused.message) == ("guard_not_destroyable", True)
    with guard.admit(rig.stream(allowed), allowed, ()):
        pass


@pytest.mark.parametrize(
    ("field", "value"),
    [("path", "/dev/vda"), ("stable_id", "loop:/other"), ("serial", "S1"), ("kind", "file"), ("id", "else")],
)
def test_it_refuses_an_order_that_differs_from_the_policy(allowed: Policy, field: str, value: str) -> None:
    stream = rig.stream(allowed)
    other = msgspec.structs.replace(stream, target=msgspec.structs.replace(stream.target, **{field: value}))
    assert refusal(other, allowed).code == "guard_not_in_policy"


def test_it_refuses_another_drive_under_the_same_path(allowed: Policy, device: str, tmp_path: Path) -> None:
    stream = rig.stream(allowed)
    rig.detach(device)
    assert refusal(stream, allowed).code == "guard_serial_changed"
    rig.run("losetup", device, str(rig.sparse(tmp_path / "other.img")))
    assert refusal(stream, allowed).code == "guard_serial_changed"


def test_it_refuses_a_file_exchanged_under_a_loop_device(allowed: Policy, file: Path) -> None:
    """The kernel names the file by where it is now: moved away, it is no longer what the policy means."""
    stream = rig.stream(allowed, writes=True)
    file.rename(file.with_suffix(".moved"))
    rig.sparse(file)
    assert refusal(stream, allowed).code == "guard_serial_changed"
    file.with_suffix(".moved").unlink()
    assert refusal(stream, allowed).code == "guard_serial_changed"


def test_it_refuses_a_file_hidden_under_another_of_the_same_name(allowed: Policy, file: Path, tmp_path: Path) -> None:
    stream = rig.stream(allowed, writes=True)
    rig.run("mount", "--bind", str(rig.sparse(tmp_path / "other.img")), str(file))
    try:
        assert refusal(stream, allowed).code == "guard_serial_changed"
    finally:
        rig.unmount(file)


def test_it_refuses_a_serial_that_changed(tmp_path: Path, device: str, file: Path) -> None:
    allowed = rig.load(tmp_path, rig.block(device, file, serial="S3R14L", destroy=True))
    assert refusal(rig.stream(allowed), allowed).code == "guard_serial_changed"


def test_it_refuses_a_mounted_device_also_for_reading(allowed: Policy, device: str, tmp_path: Path) -> None:
    with rig.mounted(device, tmp_path / "point"):
        assert refusal(rig.stream(allowed), allowed).code == "guard_mounted"
        assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_mounted"


def test_it_reads_a_mounted_device_if_the_policy_says_so(tmp_path: Path, device: str, file: Path) -> None:
    allowed = rig.load(tmp_path, rig.block(device, file, destroy=True, read_mounted=True))
    with rig.mounted(device, tmp_path / "point"):
        with guard.admit(rig.stream(allowed), allowed, ()) as place:
            assert place.path == device
        assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_mounted"


def test_it_refuses_swap(allowed: Policy, device: str) -> None:
    rig.run("mkswap", device)
    rig.run("swapon", device)
    try:
        assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_held"
    finally:
        rig.run("swapoff", device)


def test_it_refuses_a_disk_whose_partition_is_mounted_and_admits_the_free_partition(tmp_path: Path, file: Path) -> None:
    with rig.loop(file, "--partscan") as device:
        part = rig.partition(device)
        whole = rig.block(device, file, destroy=True, destroy_signatures=["gpt", "PMBR", "ext4"])
        inner = {**whole, "id": "part", "path": part, "stable_id": identity(Path(part).name)}
        allowed = rig.load(tmp_path, whole, inner)
        with guard.admit(rig.stream(allowed, target=1, writes=True), allowed, (inner["stable_id"],)) as place:
            assert (place.path, place.device, place.size_bytes) == (part, Path(device).name, 32 * rig.MIB)
            assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_busy"
        with rig.mounted(part, tmp_path / "point"):
            refused = refusal(rig.stream(allowed, writes=True), allowed)
            assert (refused.code, Path(part).name in refused.message) == ("guard_mounted", True)
            assert refusal(rig.stream(allowed, target=1), allowed).code == "guard_mounted"


def test_it_refuses_a_file_that_is_under_two_loop_devices(allowed: Policy, file: Path) -> None:
    with rig.loop(file):
        assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_held"


def test_it_refuses_a_loop_device_on_a_device(tmp_path: Path, device: str) -> None:
    with rig.loop(Path(device)) as outer:
        allowed = rig.load(tmp_path, rig.block(outer, Path(device), destroy=True))
        assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_held"


def test_it_follows_a_link_of_udev_but_not_to_a_plain_file(tmp_path: Path, file: Path, device: str) -> None:
    link = Path(f"/dev/sweetspot-test-{os.getpid()}")
    allowed = rig.load(tmp_path, rig.block(str(link), file, destroy=True))
    try:
        link.symlink_to(device)
        stream = rig.stream(allowed)
        with guard.admit(stream, allowed, ()) as place:
            assert place.path == device
        assert [target.opens for target in report_targets(allowed)] == [device]
        link.unlink()
        link.symlink_to(file)
        assert refusal(stream, allowed).code == "guard_path"
        link.unlink()
        assert refusal(stream, allowed).code == "guard_path"
    finally:
        link.unlink(missing_ok=True)


def test_it_refuses_the_disk_that_the_host_runs_from(tmp_path: Path) -> None:
    from worker.kernel import sysfs, usage

    disk = min(usage.read_usage().root_disks(), default="")
    if not disk or not Path(sysfs.device_path(disk)).exists():
        pytest.skip("the root file system lies on no device with a node")
    target = {"id": "root", "kind": "block", "path": f"/dev/{disk}", "stable_id": sysfs.stable_id(disk)}
    allowed = rig.load(tmp_path, target)
    assert refusal(rig.stream(allowed), allowed).code == "guard_mounted"


def test_it_refuses_more_than_the_device_holds(allowed: Policy) -> None:
    assert refusal(rig.stream(allowed, size=65 * rig.MIB), allowed).code == "guard_no_space"


def test_it_refuses_a_read_only_device_for_writing(tmp_path: Path, file: Path) -> None:
    with rig.loop(file, "--read-only") as device:
        allowed = rig.load(tmp_path, rig.block(device, file, destroy=True))
        assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_path"
