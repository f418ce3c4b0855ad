"""Loop devices and mounts that use a target, whatever has become of the path by which they opened it."""

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from worker import guard
from worker.guard import blocks, loop_files
from worker.guard.loop_files import File
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.guard.tests.refused import refusal
from worker.kernel import usage
from worker.kernel.signatures import identity
from worker.policy import Policy

pytestmark = rig.needs_root


# ---- how another loop device gets the file, so that its path leads nowhere


@contextmanager
def removed_link(file: Path) -> Iterator[str]:
    link = file.with_name("link.img")
    link.hardlink_to(file)
    with rig.loop(link) as other:
        link.unlink()
        yield other


@contextmanager
def removed_bind(file: Path) -> Iterator[str]:
    with rig.mount_at(file.parent / "bind", "--bind", str(file.parent)) as point, rig.loop(point / file.name) as other:
        rig.run("umount", "--lazy", str(point))
        yield other


@contextmanager
def overlay(file: Path) -> Iterator[str]:
    upper, work = file.parent / "upper", file.parent / "work"
    upper.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    options = f"lowerdir={file.parent},upperdir={upper},workdir={work}"
    with (
        rig.mount_at(file.parent.parent / "merged", "-t", "overlay", "none", "-o", options) as point,
        rig.loop(point / file.name, "--read-only") as other,
    ):
        yield other


@contextmanager
def removed_overlay(file: Path) -> Iterator[str]:
    with overlay(file) as other:
        rig.run("umount", "--lazy", str(file.parent.parent / "merged"))
        yield other


@contextmanager
def other_namespace(file: Path) -> Iterator[str]:
    """A container has the file at a path that does not exist here."""
    number = rig.next_loop()
    inside = (
        f"mount -t tmpfs none /mnt && touch /mnt/x && mount --bind {file} /mnt/x && losetup /dev/loop{number} /mnt/x"
    )
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", f"{inside} && echo ready && exec sleep 60"], stdout=subprocess.PIPE
    ) as container:
        assert container.stdout is not None
        assert container.stdout.readline() == b"ready\n"
        try:
            yield f"/dev/loop{number}"
        finally:
            container.kill()
            rig.remove_loop(number)


@contextmanager
def long_path(file: Path) -> Iterator[str]:
    """A path that is too long for sysfs."""
    fd = os.open(file.parent, os.O_RDONLY)
    for _ in range(25):
        with suppress(FileExistsError):
            os.mkdir("x" * 200, dir_fd=fd)
        inner = os.open("x" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    try:
        os.link(file, "deep.img", dst_dir_fd=fd)
        with rig.loop(Path(f"/proc/{os.getpid()}/fd/{fd}/deep.img")) as other:
            os.unlink("deep.img", dir_fd=fd)
            yield other
    finally:
        os.close(fd)


WAYS = [removed_link, removed_bind, overlay, removed_overlay, other_namespace, long_path]
Way = Callable[[Path], AbstractContextManager[str]]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir(mode=0o755)
    file = rig.sparse(folder / "vm.img")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_never_writes_a_file_that_a_loop_device_uses(tmp_path: Path, image: Path, way: Way) -> None:
    allowed = rig.load(tmp_path, {"id": "vm", "kind": "file", "path": str(image), "destroy": True})
    stream = rig.stream(allowed, writes=True)
    with way(image) as other:
        refused = refusal(stream, allowed)
        assert (refused.code, Path(other).name in refused.message) == ("guard_held", True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        with way(image) as other, pytest.raises(GuardRefused) as caught:
            place.recheck(programs=False)
        assert (caught.value.code, Path(other).name in caught.value.message) == ("guard_held", True)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_never_uses_a_loop_device_whose_file_another_one_uses(tmp_path: Path, image: Path, way: Way) -> None:
    with rig.loop(image) as device:
        allowed = rig.load(tmp_path, rig.block(device, image, destroy=True))
        stream = rig.stream(allowed, writes=True)
        with way(image) as other:
            refused = refusal(stream, allowed)
            assert (refused.code, Path(other).name in refused.message) == ("guard_held", True)
        with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
            place.recheck(programs=True)
            with way(image), pytest.raises(GuardRefused) as caught:
                place.recheck(programs=False)
            assert caught.value.code == "guard_held"


def test_it_never_writes_a_scratch_file_that_a_loop_device_uses(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o755)
    allowed = rig.load(tmp_path, {"id": "scratch", "kind": "directory", "path": str(scratch)})
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, ()) as place:
        file = rig.sparse(scratch / ".sweetspot/sweetspot.1048576.0", rig.MIB)
        place.recheck(programs=True)
        with rig.loop(file), pytest.raises(GuardRefused) as caught:
            place.recheck(programs=False)
        assert caught.value.code == "guard_held"
    with rig.loop(file) as other:
        refused = refusal(stream, allowed)
        assert (refused.code, Path(other).name in refused.message) == ("guard_held", True)


# ---- loop devices over block devices


@pytest.mark.parametrize("is_kept", [True, False])
def test_it_finds_a_loop_device_over_a_node_of_another_name(
    allowed: Policy, device: str, tmp_path: Path, is_kept: bool
) -> None:
    stream = rig.stream(allowed, writes=True)
    node = tmp_path / "node"
    os.mknod(node, 0o060600, Path(device).stat().st_rdev)
    with rig.loop(node) as other:
        if not is_kept:
            node.unlink()
        refused = refusal(stream, allowed)
        assert (refused.code, Path(other).name in refused.message) == ("guard_held", True)
        assert refusal(rig.stream(allowed), allowed).code == "guard_held"


def test_it_finds_a_loop_device_over_a_partition_or_its_disk(tmp_path: Path, file: Path) -> None:
    with rig.loop(file, "--partscan") as device:
        part = rig.partition(device)
        disk = rig.block(device, file, destroy=True)
        allowed = rig.load(tmp_path, disk, {**disk, "id": "part", "path": part, "stable_id": identity(Path(part).name)})
        for over, target in ((part, 0), (device, 1)):
            with rig.loop(Path(over)):
                assert refusal(rig.stream(allowed, writes=True, target=target), allowed).code == "guard_held"


def test_it_finds_a_loop_device_whose_file_is_on_the_drive(allowed: Policy, device: str, tmp_path: Path) -> None:
    """The file system was unmounted lazily: no mount table shows it, and a loop device keeps it alive."""
    stream = rig.stream(allowed, writes=True)
    with rig.mounted(device, tmp_path / "point") as point:
        with rig.loop(rig.sparse(point / "inner.img", rig.MIB)) as other:
            rig.run("umount", "--lazy", str(point))
            refused = refusal(stream, allowed)
            assert (refused.code, Path(other).name in refused.message) == ("guard_held", True)
        rig.run("mount", device, str(point))  # for the end of the block


def test_it_finds_a_drive_that_is_mounted_in_another_namespace(allowed: Policy, device: str) -> None:
    rig.run("mkfs.ext4", "-q", "-F", device)
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", f"mount {device} /mnt && echo ready && exec sleep 60"],
        stdout=subprocess.PIPE,
    ) as container:
        assert container.stdout is not None
        assert container.stdout.readline() == b"ready\n"
        refused = refusal(rig.stream(allowed, writes=True), allowed)
        assert (refused.code, str(container.pid) in refused.message) == ("guard_mounted", True)
        container.kill()


def test_it_asks_a_loop_device_without_a_node(device: str, file: Path) -> None:
    """Its node is absent, or another device has its name: the numbers count."""
    node = Path(device)
    numbers, facts = node.stat().st_rdev, file.stat()
    node.unlink()
    try:
        for fake in (None, os.makedev(1, 3)):
            if fake:
                os.mknod(node, 0o020600, fake)
            used = loop_files.loop_file(node.name)
            assert used is not None
            assert (used.file.device, used.file.inode, used.block) == (facts.st_dev, facts.st_ino, None)
            assert not list(Path("/dev").glob(".sweetspot-*"))
    finally:
        node.unlink(missing_ok=True)
        os.mknod(node, 0o060600, numbers)


def test_a_loop_device_that_cannot_be_asked_counts_as_used(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container. What only reads, and a directory, is refused only by the path that sysfs shows."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o755)
    other = rig.load(tmp_path, {"id": "scratch", "kind": "directory", "path": str(scratch)})
    image = rig.sparse(tmp_path / "vm.img")
    image.chmod(0o600)
    files = rig.load(tmp_path, {"id": "vm", "kind": "file", "path": str(image), "destroy": True})
    monkeypatch.setattr(loop_files, "DEV", tmp_path / "absent")
    refused = refusal(rig.stream(files, writes=True), files)
    assert refused.code == "guard_held"
    with rig.loop(Path(device)) as over:
        numbers = Path(device).stat().st_rdev
        assert loop_files.on_devices({(os.major(numbers), os.minor(numbers))}, strict=False) == (Path(over).name,)
    with guard.admit(rig.stream(other, writes=True), other, ()):
        file = rig.sparse(scratch / ".sweetspot/sweetspot.1048576.0", rig.MIB)
    with guard.admit(rig.stream(other, writes=True), other, ()):
        pass
    with rig.loop(file):
        assert refusal(rig.stream(other, writes=True), other).code == "guard_held"


# ---- files that are the same


@pytest.mark.parametrize(
    ("file", "other", "may_be"),
    [
        (File(os.makedev(8, 1), 12, "ext4"), File(os.makedev(8, 1), 12, "ext4"), True),
        (File(os.makedev(8, 1), 12, "ext4"), File(os.makedev(8, 2), 12, "ext4"), False),
        (File(os.makedev(8, 1), 12, "ext4"), File(os.makedev(0, 41), 12, "overlay"), True),
        (File(os.makedev(8, 1), 12, "ext4"), File(os.makedev(0, 41), 1 << 63 | 12, "overlay"), True),
        (File(os.makedev(8, 1), 12, "ext4"), File(os.makedev(0, 41), 13, "overlay"), False),
        (File(os.makedev(8, 1), 12, "ext4"), File(os.makedev(0, 41), 12, ""), True),  # nobody knows its file system
        (File(os.makedev(8, 1), 12, "ext4"), File(os.makedev(0, 41), 12, "tmpfs"), False),
        (File(os.makedev(0, 41), 12, "overlay"), File(os.makedev(8, 1), 12, "ext4"), True),
        (File(os.makedev(0, 40), 257, "btrfs"), File(os.makedev(0, 41), 257, "btrfs"), False),  # two subvolumes
    ],
)
def test_it_compares_files_across_stacked_file_systems(file: File, other: File, may_be: bool) -> None:
    assert file.may_be(other) is may_be


def test_it_never_takes_two_files_of_one_overlay_for_the_same() -> None:
    assert not File(os.makedev(0, 41), 12, "overlay").may_be(File(os.makedev(0, 41), 13, "overlay"))


# ---- images that are mounted without a loop device


@pytest.mark.parametrize("is_renamed", [False, True])
def test_it_finds_an_image_that_is_mounted_without_a_loop_device(
    allowed: Policy, tmp_path: Path, is_renamed: bool
) -> None:
    folder = tmp_path / "images"
    folder.mkdir(mode=0o755)
    image, point = rig.erofs(folder / "erofs.img"), tmp_path / "point"
    if not rig.mount_without_loop(image, point):
        pytest.skip("this kernel mounts no erofs from a file")
    try:
        if is_renamed:
            image = image.rename(folder / "other.img")
        files = rig.load(tmp_path, {"id": "vm", "kind": "file", "path": str(image), "destroy": True})
        code = refusal(rig.stream(files, writes=True, size=4096), files).code
        assert code == ("guard_held" if is_renamed else "guard_mounted")
        with rig.loop(image) as device:
            inner = rig.load(folder, rig.block(device, image, destroy=True))
            assert refusal(rig.stream(inner, writes=True, size=4096), inner).code == "guard_mounted"
        with guard.admit(rig.stream(allowed), allowed, ()):
            pass  # another image
    finally:
        rig.unmount(point)


@pytest.mark.parametrize("way", ["relative", "replaced", "descriptor", "lazy"])
def test_it_finds_a_mounted_image_whose_path_proves_nothing(allowed: Policy, tmp_path: Path, way: str) -> None:
    """The mount table shows another path, that of another file, or nothing: the file of the loop device decides."""
    folder, point = tmp_path / "images", tmp_path / "point"
    folder.mkdir(mode=0o755)
    image = rig.erofs(folder / "erofs.img")
    with ExitStack() as open_files:
        source = str(image)
        if way == "relative":
            source = os.path.relpath(image)
        if way == "descriptor":
            source = f"/proc/self/fd/{open_files.enter_context(image.open('rb')).fileno()}"
        if not rig.mount_without_loop(source, point):
            pytest.skip("this kernel mounts no erofs from a file")
        open_files.callback(subprocess.run, ["umount", "--lazy", str(point)], check=False, capture_output=True)
        if way == "descriptor":
            assert {
                mounted.file
                for mounted in usage.read_usage(everywhere=True).mounted_files
                if mounted.mount.point == str(point)
            } == {None}  # it is not the descriptor of this process
        if way == "replaced":
            image = image.rename(folder / "other.img")
            rig.sparse(folder / "erofs.img", rig.MIB)
        if way == "lazy":
            fd = os.open(point, os.O_RDONLY)
            open_files.callback(os.close, fd)
            rig.run("umount", "--lazy", str(point))
        with rig.loop(image) as device:
            inner = rig.load(folder, rig.block(device, image, destroy=True, destroy_signatures=["erofs"]))
            assert refusal(rig.stream(inner, writes=True, size=4096), inner).code == "guard_mounted"
        with guard.admit(rig.stream(allowed), allowed, ()):
            pass  # another image


def test_each_file_may_belong_to_a_mounted_image_of_several_files(tmp_path: Path) -> None:
    """Not mounted here: while such an image is mounted, tests beside this one could use no loop device."""
    table = "36 35 0:98 / /mnt ro - erofs {} ro\n"
    for is_in_two_files in (False, True):
        image = rig.erofs(tmp_path / "erofs.img", is_in_two_files=is_in_two_files)
        mounts = usage.read_mounts(table.format(image))
        (mounted,) = usage._mounted_files(mounts, Path("/"))
        other = rig.sparse(tmp_path / "other.img", rig.MIB)
        with other.open("rb") as file:
            opened = loop_files.opened_file(file.fileno())
        assert blocks._may_be_mounted_as(mounted, opened, str(other)) == is_in_two_files


def test_it_finds_users_of_the_copy_that_an_overlay_has_made(tmp_path: Path) -> None:
    """The overlay shows the inode of the lower file also after it has copied the file to its upper layer."""
    lower, upper, work = (tmp_path / name for name in ("lower", "upper", "work"))
    for folder in (lower, upper, work):
        folder.mkdir(mode=0o755)
    rig.sparse(lower / "vm.img").chmod(0o600)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    with rig.mount_at(tmp_path / "merged", "-t", "overlay", "none", "-o", options) as point:
        point.chmod(0o755)
        os.utime(point / "vm.img")  # copies it
        allowed = rig.load(tmp_path, {"id": "vm", "kind": "file", "path": str(point / "vm.img"), "destroy": True})
        stream = rig.stream(allowed, writes=True)
        with rig.loop(upper / "vm.img") as other:
            assert (point / "vm.img").stat().st_ino != (upper / "vm.img").stat().st_ino
            refused = refusal(stream, allowed)
            assert (refused.code, Path(other).name in refused.message) == ("guard_held", True)
        with rig.opened_elsewhere(str(upper / "vm.img")) as process:
            refused = refusal(stream, allowed)
            assert (refused.code, f"(process {process})" in refused.message) == ("guard_held", True)
        with guard.admit(stream, allowed, (stream.target.stable_id,)):
            pass


# ---- what changes while a drive is held


def test_a_recheck_finds_a_loop_device_on_the_held_drive(allowed: Policy, device: str) -> None:
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        place.recheck(programs=True)
        with rig.loop(Path(device)) as other, pytest.raises(GuardRefused) as caught:
            place.recheck(programs=False)
        assert (caught.value.code, Path(other).name in caught.value.message) == ("guard_held", True)


def test_a_recheck_finds_a_program_that_opened_the_held_drive(allowed: Policy, device: str) -> None:
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place, rig.opened_elsewhere(device) as process:
        place.recheck(programs=False)
        with pytest.raises(GuardRefused) as caught:
            place.recheck(programs=True)
        assert (caught.value.code, f"(process {process})" in caught.value.message) == ("guard_held", True)


def test_a_recheck_finds_that_a_held_drive_changed(tmp_path: Path, file: Path) -> None:
    changes: dict[str, Callable[[str], object]] = {
        "guard_changed": lambda device: rig.run("resizepart", device, "1", "81920"),
        "": lambda device: rig.run("resizepart", device, "1", "65536"),
    }
    with rig.loop(file, "--partscan") as device:
        path = rig.partition(device)
        part = {**rig.block(path, file, destroy=True), "stable_id": identity(Path(path).name)}
        allowed = rig.load(tmp_path, part)
        stream = rig.stream(allowed, writes=True)
        with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
            for code, change in changes.items():
                change(device)
                if not code:
                    place.recheck(programs=False)
                    continue
                with pytest.raises(GuardRefused) as caught:
                    place.recheck(programs=False)
                assert caught.value.code == code


def test_a_recheck_finds_that_a_held_loop_device_grew(allowed: Policy, device: str, file: Path) -> None:
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        with file.open("r+b") as grown:
            grown.truncate(96 * rig.MIB)
        rig.run("losetup", "--set-capacity", device)
        with pytest.raises(GuardRefused) as caught:
            place.recheck(programs=False)
    assert caught.value.code == "guard_changed"


def test_a_recheck_finds_that_a_held_loop_device_moved(allowed: Policy, device: str) -> None:
    """LOOP_SET_STATUS64 changes the offset of a loop device that others have open."""
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        with open(device, "rb", buffering=0) as loop:  # noqa: PTH123 - a device
            status = bytearray(fcntl.ioctl(loop, 0x4C05, bytes(232)))
            status[24:32] = rig.MIB.to_bytes(8, "little")
            fcntl.ioctl(loop, 0x4C04, bytes(status))
        with pytest.raises(GuardRefused) as caught:
            place.recheck(programs=False)
    assert caught.value.code in ("guard_changed", "guard_serial_changed")  # the offset is part of its stable id


def test_a_recheck_finds_another_file_at_the_path_of_the_held_one(tmp_path: Path, image: Path) -> None:
    allowed = rig.load(tmp_path, {"id": "vm", "kind": "file", "path": str(image), "destroy": True})
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        place.recheck(programs=True)
        image.rename(image.with_suffix(".moved"))
        with pytest.raises(GuardRefused):
            place.recheck(programs=False)
        rig.sparse(image)
        with pytest.raises(GuardRefused):
            place.recheck(programs=False)


# ---- a drive that is busy for seconds


def leave_open(point: Path, seconds: float) -> "subprocess.Popen[bytes]":
    """A program with an open file keeps a file system alive after `umount --lazy`, and thereby its drive busy."""
    process = subprocess.Popen(["sh", "-c", f"exec 9>{point}/file; echo ready; exec sleep {seconds}"], stdout=-1)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_it_waits_for_a_drive_that_is_busy_after_its_file_system_was_unmounted(
    device: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.guard.openers.BUSY_LIMIT_S", 10.0)
    allowed = rig.load(tmp_path, rig.block(device, file, destroy=True, destroy_signatures=["ext4"]))
    stream = rig.stream(allowed, writes=True)
    rig.run("mkfs.ext4", "-q", "-F", device)
    with rig.mount_at(tmp_path / "point", device) as point, leave_open(point, 1.0):
        rig.run("umount", "--lazy", str(point))
        with pytest.raises(OSError, match="busy"):
            os.open(device, os.O_RDONLY | os.O_EXCL)
        began = time.monotonic()
        with guard.admit(stream, allowed, (stream.target.stable_id,)):
            assert time.monotonic() - began < 10.0


def test_it_says_who_keeps_a_drive_busy(allowed: Policy, device: str, tmp_path: Path) -> None:
    rig.run("mkfs.ext4", "-q", "-F", device)
    with rig.mount_at(tmp_path / "point", device) as point, leave_open(point, 60.0) as process:
        rig.run("umount", "--lazy", str(point))
        refused = refusal(rig.stream(allowed, writes=True), allowed)
        assert (refused.code, f"(process {process.pid})" in refused.message) == ("guard_busy", True)
        process.kill()
