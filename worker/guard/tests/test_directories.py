import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from worker import guard
from worker.contract.workload import Stream
from worker.guard.directories import _file_system
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.policy import Policy


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    path = tmp_path / "scratch"
    path.mkdir(mode=0o755)
    return path


def allow(tmp_path: Path, path: Path, **more: Any) -> Policy:
    return rig.load(tmp_path, {"id": "scratch", "kind": "directory", "path": str(path), **more})


def allow_file(tmp_path: Path, path: Path, **more: Any) -> Policy:
    return rig.load(tmp_path, {"id": "image", "kind": "file", "path": str(path), **more})


def refusal(stream: Stream, allowed: Policy, armed: tuple[str, ...] = ()) -> GuardRefused:
    with pytest.raises(GuardRefused) as caught, guard.admit(stream, allowed, armed):
        pass
    return caught.value


def test_it_makes_a_private_directory_and_admits_writes_to_it(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch)
    with guard.admit(rig.stream(allowed, writes=True), allowed, ()) as place:
        assert place.cwd_fd is not None
        assert os.path.samestat(os.fstat(place.cwd_fd), (scratch / ".sweetspot").stat())
        assert place.target == "scratch"
    assert (scratch / ".sweetspot").stat().st_mode & 0o777 == 0o700


def test_it_stays_in_the_directory_it_checked_whatever_has_the_name_later(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch)
    trap = tmp_path / "trap"
    (trap / ".sweetspot").mkdir(parents=True)
    with guard.admit(rig.stream(allowed, writes=True), allowed, ()) as place:
        scratch.rename(tmp_path / "moved")
        scratch.symlink_to(trap)
        os.close(os.open("written", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=place.cwd_fd))
    assert (tmp_path / "moved/.sweetspot/written").exists()
    assert not list((trap / ".sweetspot").iterdir())
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"


def test_it_refuses_a_link_anywhere_in_the_path(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    allowed = allow(tmp_path, tmp_path / "link/scratch")
    refused = refusal(rig.stream(allowed), allowed)
    assert (refused.code, "symbolic link" in refused.message) == ("guard_path", True)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_it_refuses_a_directory_that_others_can_write(tmp_path: Path, scratch: Path, mode: int) -> None:
    scratch.chmod(mode)
    allowed = allow(tmp_path, scratch)
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"


def test_it_refuses_a_way_on_which_others_can_rename(tmp_path: Path, scratch: Path) -> None:
    (scratch / "inner").mkdir()
    allowed = allow(tmp_path, scratch / "inner")
    scratch.chmod(0o777)
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"
    scratch.chmod(0o1777)
    with guard.admit(rig.stream(allowed), allowed, ()):
        pass


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: chown")
def test_it_refuses_what_belongs_to_somebody_else(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch)
    with guard.admit(rig.stream(allowed), allowed, ()):
        pass
    os.chown(scratch / ".sweetspot", 12345, 12345)
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"
    os.chown(scratch, 12345, 12345)
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"


def test_it_refuses_links_and_odd_things_among_its_files(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch)
    private, victim = scratch / ".sweetspot", tmp_path / "victim"
    private.mkdir(mode=0o700)
    victim.write_text("precious")
    odd = private / "sweetspot.1048576.0"
    makes: list[Callable[[], None]] = [
        lambda: odd.symlink_to(victim),
        lambda: odd.hardlink_to(victim),
        odd.mkdir,
        lambda: os.mkfifo(odd),
    ]
    for make in makes:
        make()
        assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_path"
        odd.rmdir() if odd.is_dir() else odd.unlink()
    with guard.admit(rig.stream(allowed, writes=True), allowed, ()):
        pass


def test_it_refuses_a_private_directory_that_is_a_link_or_open_to_others(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch)
    (scratch / ".sweetspot").symlink_to(tmp_path)
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"
    (scratch / ".sweetspot").unlink()
    (scratch / ".sweetspot").mkdir()
    (scratch / ".sweetspot").chmod(0o755)
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"


def test_it_lets_one_trial_at_a_time_into_a_directory(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch)
    with guard.admit(rig.stream(allowed), allowed, ()):
        assert refusal(rig.stream(allowed), allowed).code == "guard_busy"


def test_it_keeps_to_the_policys_amount_of_bytes(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch, max_bytes=2 * rig.MIB)
    with guard.admit(rig.stream(allowed, files=2), allowed, ()):
        pass
    assert refusal(rig.stream(allowed, files=3), allowed).code == "guard_no_space"
    (scratch / ".sweetspot/other").write_bytes(b"x" * 4096)
    assert refusal(rig.stream(allowed, files=2), allowed).code == "guard_no_space"


def test_it_removes_the_oldest_test_files_of_other_sizes_only_if_it_needs_their_space(
    tmp_path: Path, scratch: Path
) -> None:
    allowed = allow(tmp_path, scratch, max_bytes=3 * rig.MIB)
    names = ["sweetspot.1024.0", "sweetspot.2048.0"]
    with guard.admit(rig.stream(allowed), allowed, ()):
        pass
    for at, name in enumerate(names):
        (scratch / ".sweetspot" / name).write_bytes(os.urandom(rig.MIB))
        os.utime(scratch / ".sweetspot" / name, (at, at))

    def left(files: int) -> list[str]:
        with guard.admit(rig.stream(allowed, files=files), allowed, ()):
            return sorted(path.name for path in (scratch / ".sweetspot").iterdir())

    assert left(files=1) == names
    assert refusal(rig.stream(allowed, files=4), allowed).code == "guard_no_space"
    assert left(files=1) == names
    assert left(files=2) == names[1:]


def test_all_streams_in_a_directory_need_space_and_keep_their_files(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch, max_bytes=2 * rig.MIB)
    reader, writer = (structs.replace(rig.stream(allowed), number=n, name=name) for n, name in enumerate(("r", "w")))
    old = scratch / ".sweetspot" / "sweetspot.old.1024.0"
    with guard.admit(reader, allowed, (), [writer]):
        old.write_bytes(os.urandom(rig.MIB))
    with guard.admit(reader, allowed, (), [writer]):
        assert not old.exists()
    larger = structs.replace(rig.stream(allowed, files=2), number=1, name="w")
    with pytest.raises(GuardRefused, match="the policy allows"), guard.admit(larger, allowed, (), [reader]):
        pass


def test_test_files_count_as_free_space(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.guard.directories._free", lambda _: (100 * rig.MIB, 200 * rig.MIB))
    allowed = allow(tmp_path, scratch)
    with guard.admit(rig.stream(allowed), allowed, ()):
        (scratch / ".sweetspot/sweetspot.1024.0").write_bytes(os.urandom(8 * rig.MIB))
    found = guard.survey(allowed.targets[0]).size_bytes
    assert 98 * rig.MIB <= found < 99 * rig.MIB  # 5 % of 200 MiB stay free


def test_the_size_of_a_directory_is_what_a_workload_may_use(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.guard.directories._free", lambda _: (100 * rig.MIB, 200 * rig.MIB))
    for given, room in (({}, 90 * rig.MIB), ({"max_bytes": 30 * rig.MIB}, 30 * rig.MIB)):
        allowed = allow(tmp_path, scratch, **given)
        assert guard.survey(allowed.targets[0]).size_bytes == room
        with guard.admit(rig.stream(allowed, size=room), allowed, ()):
            pass
        assert refusal(rig.stream(allowed, size=room + 4096), allowed).code == "guard_no_space"


def test_directories_of_one_file_system_have_its_name(tmp_path: Path, scratch: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first, second = (guard.survey(allow(tmp_path, folder).targets[0]).file_system for folder in (scratch, other))
    assert first == second != ""
    with Path("/proc/self/stat").open() as elsewhere:
        assert _file_system(elsewhere.fileno()) != first


def test_it_leaves_room_on_the_file_system(tmp_path: Path, scratch: Path) -> None:
    allowed = allow(tmp_path, scratch)
    space = os.statvfs(scratch)
    nearly_all = space.f_bavail * space.f_frsize - space.f_blocks * space.f_frsize // 40
    refused = refusal(rig.stream(allowed, size=nearly_all // 512 * 512), allowed)
    assert refused.code == "guard_no_space"
    assert "Delete other files on this file system" in refused.message, "the worker's own files would not suffice"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_names_the_device_under_a_directory(tmp_path: Path) -> None:
    with (
        rig.loop(rig.sparse(tmp_path / "disk.img")) as device,
        rig.mounted(device, tmp_path / "point") as point,
    ):
        allowed = allow(tmp_path, point)
        with guard.admit(rig.stream(allowed), allowed, ()) as place:
            assert place.device == Path(device).name


def test_it_reads_a_file_and_writes_it_only_when_allowed_and_armed(tmp_path: Path, scratch: Path) -> None:
    image = rig.sparse(scratch / "image")
    allowed = allow_file(tmp_path, image)
    with guard.admit(rig.stream(allowed), allowed, ()) as place:
        assert place.path == "image"
        assert place.cwd_fd is not None
    assert refusal(rig.stream(allowed, writes=True), allowed, (f"file:{image}",)).code == "guard_not_destroyable"
    allowed = allow_file(tmp_path, image, destroy=True)
    assert refusal(rig.stream(allowed, writes=True), allowed).code == "guard_not_armed"
    with guard.admit(rig.stream(allowed, writes=True), allowed, (f"file:{image}",)):
        pass
    assert refusal(rig.stream(allowed, size=65 * rig.MIB), allowed).code == "guard_no_space"


def test_it_refuses_files_with_links(tmp_path: Path, scratch: Path) -> None:
    image = rig.sparse(scratch / "image")
    (scratch / "link").symlink_to(image)
    by_link = allow_file(tmp_path, scratch / "link")
    assert refusal(rig.stream(by_link), by_link).code == "guard_path"
    (scratch / "second").hardlink_to(image)
    allowed = allow_file(tmp_path, image)
    assert refusal(rig.stream(allowed), allowed).code == "guard_path"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_it_refuses_to_write_a_file_that_is_under_a_loop_device(tmp_path: Path, scratch: Path) -> None:
    image = rig.sparse(scratch / "image")
    allowed = allow_file(tmp_path, image, destroy=True)
    with rig.loop(image):
        assert refusal(rig.stream(allowed, writes=True), allowed, (f"file:{image}",)).code == "guard_held"
