"""Warnings about targets: real loop devices and file systems, and a recorded mount table."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from worker.contract.workload import TargetKind
from worker.drives.records import Drives
from worker.guard.tests import rig
from worker.kernel.usage import Mount
from worker.link import targets
from worker.link.targets import report_targets
from worker.policy import PolicyEntry


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("tmpfs", "is on tmpfs, which is memory and not a drive."),
        ("ramfs", "is on ramfs, which is memory and not a drive."),
        ("overlay", "is on an overlay file system, so the drive under it is unknown"),
        ("nfs4", "is on nfs4, a network file system"),
        ("fuse.cephfs", "is on fuse.cephfs, a network file system"),
        ("fuse.s3fs", "is on fuse.s3fs, a network file system"),
        ("9p", "is on 9p, a network file system"),
        ("ext4", ""),
    ],
)
def test_it_warns_about_file_systems_without_a_drive_of_this_host(
    kind: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = Mount(id=1, major_minor="0:1", point="/x", options="rw", kind=kind, source="x")
    monkeypatch.setattr(targets, "mount_of", lambda _fd: mount)
    entry = PolicyEntry(id="a", kind=TargetKind.DIRECTORY, path=str(tmp_path))
    found = targets.target_warnings(entry, "")
    assert [f"{tmp_path} {words}" in text for text in found] == [True] * bool(words)


@pytest.mark.parametrize(("name", "words"), [("zram0", "zram0 is zram"), ("ram1", "a RAM disk"), ("nullb0", "stores")])
def test_it_warns_about_devices_without_a_drive(name: str, words: str) -> None:
    entry = PolicyEntry(id="a", kind=TargetKind.BLOCK, path=f"/dev/{name}", stable_id="x")
    (warning,) = targets.target_warnings(entry, name)
    assert words in warning


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_warns_about_loop_devices_on_sparse_files_and_in_memory(tmp_path: Path) -> None:
    file = rig.sparse(tmp_path / "image", 4 * rig.MIB)
    with rig.loop(file) as device:
        (target,) = report_targets(rig.load(tmp_path, rig.block(device, file)))
        name = device.rpartition("/")[2]
        assert target.warnings[0].startswith(f"{name} is a loop device: All of {file} is unwritten")
        Path(file).write_bytes(os.urandom(4 * rig.MIB))
        (target,) = report_targets(rig.load(tmp_path, rig.block(device, file)))
        assert target.warnings == ()
    with TemporaryDirectory(dir="/dev/shm") as memory:
        file = Path(memory) / "image"
        file.write_bytes(os.urandom(rig.MIB))
        with rig.loop(file) as device:
            (target,) = report_targets(rig.load(tmp_path, rig.block(device, file)))
    assert [words.partition("; ")[2] for words in target.warnings] == [
        f"its file {file} is on tmpfs, which is memory and not a drive."
    ]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_looks_only_at_the_part_of_a_file_that_a_loop_device_uses(tmp_path: Path) -> None:
    """The first 2 MiB are a hole, the next 2 MiB are written."""
    file = rig.sparse(tmp_path / "image", 4 * rig.MIB)
    with file.open("r+b") as opened:
        opened.seek(2 * rig.MIB)
        opened.write(os.urandom(2 * rig.MIB))

    def warnings(*options: str) -> list[str]:
        entry = PolicyEntry(id="a", kind=TargetKind.BLOCK, path="/dev/loop", stable_id="x")
        with rig.loop(file, *options) as device:
            return [text.partition(": ")[2] for text in targets.target_warnings(entry, device[5:])]

    assert warnings(f"--offset={2 * rig.MIB}") == []
    (whole,), (middle,) = warnings(), warnings(f"--offset={rig.MIB}", f"--sizelimit={2 * rig.MIB}")
    assert whole.startswith(f"50 % of {file} is unwritten")
    assert middle.startswith(f"50 % of bytes {rig.MIB} to {3 * rig.MIB} of {file} is unwritten")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_warns_about_a_purged_drive_until_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_bytes(os.urandom(4 * rig.MIB))
    drives = Drives(tmp_path / "drives")
    (tmp_path / "drives").mkdir(exist_ok=True)
    with rig.loop(file) as device:
        allowed = rig.load(tmp_path, rig.block(device, file))
        drives.purged(device.rpartition("/")[2])
        (target,) = report_targets(allowed, drives=drives)
        assert "was purged and not written since" in target.warnings[0]
        with Path(device).open("r+b", buffering=0) as opened:
            opened.write(b"x" * 4096)
            os.fsync(opened.fileno())
        (target,) = report_targets(allowed, drives=drives)
        assert target.warnings == ()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
@pytest.mark.parametrize("sector_bytes", [512, 4096])
def test_it_reports_the_sectors_of_a_device(tmp_path: Path, sector_bytes: int) -> None:
    file = rig.sparse(tmp_path / "image", 4 * rig.MIB)
    with rig.loop(file, "--sector-size", str(sector_bytes)) as device:
        (target,) = report_targets(rig.load(tmp_path, rig.block(device, file)))
    assert (target.present, target.logical_block_bytes) == (True, sector_bytes)
