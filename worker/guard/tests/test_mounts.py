"""What is mounted over or inside a target is never written, whenever it was mounted."""

import os
from pathlib import Path

import pytest

from worker import guard
from worker.contract.workload import Stream
from worker.guard.directories import remove_private_directory
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.kernel import mounts
from worker.policy import Policy

pytestmark = rig.needs_root
NAME = "sweetspot.1048576.0"  # the file of rig.stream


class Target:
    """A directory target with a private directory, and another directory on the same file system."""

    def __init__(self, root: Path) -> None:
        self.path, self.other = root / "scratch", root / "other"
        self.private = self.path / ".sweetspot"
        self.private.mkdir(mode=0o700, parents=True)
        self.other.mkdir()
        self.precious = self.other / "precious"
        self.precious.write_bytes(b"precious")
        self.allowed = rig.load(root, {"id": "scratch", "kind": "directory", "path": str(self.path)})
        self.stream = rig.stream(self.allowed, writes=True)

    def refusal(self) -> str:
        return refusal(self.stream, self.allowed)


def refusal(stream: Stream, allowed: Policy, *armed: str) -> str:
    with pytest.raises(GuardRefused) as caught, guard.admit(stream, allowed, armed):
        pass
    return caught.value.code


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


@pytest.fixture
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a kernel before 5.12, or without the right to copy mounts."""
    monkeypatch.setattr(mounts, "_copy", lambda _: None)


def overwrite(name: str, directory_fd: int | None) -> None:
    """As fio does it."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory_fd)
    os.write(fd, b"test data")
    os.close(fd)


def test_it_refuses_a_file_that_is_bound_over_a_scratch_file(target: Target) -> None:
    (target.private / NAME).touch(0o600)
    with rig.bound(target.precious, target.private / NAME):
        assert target.refusal() == "guard_mounted"
    with guard.admit(target.stream, target.allowed, ()):
        pass


def test_it_refuses_a_file_that_is_bound_over_a_file_of_another_size(target: Target) -> None:
    """It would be removed for its space."""
    (target.private / "sweetspot.4096.0").touch(0o600)
    with rig.bound(target.precious, target.private / "sweetspot.4096.0"):
        assert target.refusal() == "guard_mounted"


@pytest.mark.parametrize("writes", [False, True])
def test_it_refuses_a_file_that_is_bound_over_a_file_target(tmp_path: Path, target: Target, *, writes: bool) -> None:
    image = rig.sparse(target.path / "image")
    allowed = rig.load(tmp_path, {"id": "image", "kind": "file", "path": str(image), "destroy": True})
    stream = rig.stream(allowed, writes=writes)
    with rig.bound(rig.sparse(target.other / "image"), image):
        assert refusal(stream, allowed, f"file:{image}") == "guard_mounted"
        assert guard.survey(allowed.targets[0]).problem
    with guard.admit(stream, allowed, (f"file:{image}",)):
        pass


def test_a_mount_during_the_trial_does_not_lead_the_engine_to_another_file(target: Target) -> None:
    with guard.admit(target.stream, target.allowed, ()) as place:
        overwrite(NAME, place.cwd_fd)
        with rig.bound(target.precious, target.private / NAME):
            overwrite(NAME, place.cwd_fd)
            place.recheck(programs=False)
    assert target.precious.read_bytes() == b"precious"
    assert (target.private / NAME).read_bytes() == b"test data"


def test_a_mount_over_a_file_target_during_the_trial_does_not_lead_the_engine_to_it(
    tmp_path: Path, target: Target
) -> None:
    image = rig.sparse(target.path / "image")
    allowed = rig.load(tmp_path, {"id": "image", "kind": "file", "path": str(image), "destroy": True})
    with (
        guard.admit(rig.stream(allowed, writes=True), allowed, (f"file:{image}",)) as place,
        rig.bound(target.precious, image),
    ):
        overwrite(place.path, place.cwd_fd)
    assert target.precious.read_bytes() == b"precious"


@pytest.mark.usefixtures("no_copies")
def test_without_copies_of_mounts_a_mount_during_the_trial_is_refused_at_the_next_step(target: Target) -> None:
    with guard.admit(target.stream, target.allowed, ()) as place:
        overwrite(NAME, place.cwd_fd)
        place.recheck(programs=False)
        with rig.bound(target.precious, target.private / NAME), pytest.raises(GuardRefused) as caught:
            place.recheck(programs=False)
        assert caught.value.code == "guard_mounted"
        assert str(target.path) in caught.value.message


@pytest.mark.usefixtures("no_copies")
def test_without_copies_of_mounts_a_mount_over_a_file_target_is_refused_at_the_next_step(
    tmp_path: Path, target: Target
) -> None:
    image = rig.sparse(target.path / "image")
    allowed = rig.load(tmp_path, {"id": "image", "kind": "file", "path": str(image)})
    with guard.admit(rig.stream(allowed), allowed, ()) as place:
        place.recheck(programs=False)
        with rig.bound(target.precious, image), pytest.raises(GuardRefused) as caught:
            place.recheck(programs=False)
    assert caught.value.code == "guard_mounted"


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_removing_the_private_directory_removes_nothing_while_something_is_mounted_in_it(
    target: Target, kind: str
) -> None:
    point = target.private / "inner" / "point"
    point.parent.mkdir()
    point.touch() if kind == "file" else point.mkdir()
    (target.private / "first").touch()
    with rig.bound(target.precious if kind == "file" else target.other, point):
        with pytest.raises(GuardRefused) as caught:
            remove_private_directory(str(target.path))
        assert caught.value.code == "guard_mounted"
        assert str(point) in caught.value.message
        assert (target.private / "first").exists()
    assert target.precious.read_bytes() == b"precious"
    remove_private_directory(str(target.path))
    assert not target.private.exists()
