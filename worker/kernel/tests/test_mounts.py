import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel import mounts
from worker.temporary import remove_recorded, temporary_folder


@pytest.fixture
def directory_fd(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "scratch"
    path.mkdir()
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "journal.db")
    yield journal
    journal.close()


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A directory of somebody else on the same file system."""
    path = tmp_path / "other"
    path.mkdir()
    (path / "precious").write_bytes(b"precious")
    return path


def test_it_removes_a_tree_without_following_links(tmp_path: Path, directory_fd: int, other: Path) -> None:
    tree = tmp_path / "scratch/tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/file").touch()
    (tree / "a/link").symlink_to(other)
    (tree / "file link").symlink_to(other / "precious")
    os.mkfifo(tree / "pipe")
    mounts.remove_tree("tree", directory_fd, str(tree.parent))
    assert not tree.exists()
    assert (other / "precious").read_bytes() == b"precious"


def test_it_removes_no_link_to_a_tree(tmp_path: Path, directory_fd: int, other: Path) -> None:
    (tmp_path / "scratch/link").symlink_to(other)
    with pytest.raises(OSError, match="link"):
        mounts.remove_tree("link", directory_fd, "")
    assert (other / "precious").exists()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts")
class TestMounts:
    @pytest.mark.parametrize("point", ["tree", "tree/a/point"])
    def test_it_removes_nothing_with_a_mount_inside(
        self, tmp_path: Path, directory_fd: int, other: Path, point: str
    ) -> None:
        path = tmp_path / "scratch" / point
        path.mkdir(parents=True)
        (tmp_path / "scratch/tree/a first").touch()
        with rig.bound(other, path):
            with pytest.raises(mounts.MountInside) as caught:
                mounts.remove_tree("tree", directory_fd, str(tmp_path / "scratch"))
            assert caught.value.point == str(path)
        assert (other / "precious").exists()
        assert (tmp_path / "scratch/tree/a first").exists()

    def test_it_does_not_enter_a_directory_that_is_bound_after_the_check(
        self, tmp_path: Path, directory_fd: int, other: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "scratch/tree/a"
        path.mkdir(parents=True)
        monkeypatch.setattr(mounts, "_refuse_mounts_below", lambda *_: None)
        with rig.bound(other, path), pytest.raises(mounts.MountInside):
            mounts.remove_tree("tree", directory_fd, "")
        assert (other / "precious").exists()

    def test_a_temporary_folder_with_a_mount_inside_stays_in_the_journal_until_it_is_unmounted(
        self, tmp_path: Path, directory_fd: int, journal: Journal, other: Path
    ) -> None:
        point = tmp_path / "scratch/temporary.0/data"
        with rig.bound_later() as bind:
            with temporary_folder("temporary.0", directory_fd, journal):
                point.mkdir()
                bind(other, point)
            assert (other / "precious").exists()
            assert [folder.path for folder in journal.folders()] == [str(point.parent)]
            (item,) = remove_recorded(journal)
            assert (item.restored, str(point) in item.note) == (False, True)
            assert (other / "precious").exists()
        (item,) = remove_recorded(journal)
        assert item.restored
        assert not point.parent.exists()
        assert not journal.folders()

    def test_a_private_copy_of_a_mount_does_not_show_what_is_mounted_inside(
        self, tmp_path: Path, directory_fd: int, other: Path
    ) -> None:
        before, later = tmp_path / "scratch/before", tmp_path / "scratch/later"
        before.mkdir()
        later.mkdir()
        with rig.bound(other, before), mounts.isolated(directory_fd) as fd:
            if fd == directory_fd:
                pytest.skip("this kernel cannot copy mounts")
            with rig.bound(other, later):
                for name in ("before", "later"):
                    assert not list(Path(f"/proc/self/fd/{fd}/{name}").iterdir())
        assert (other / "precious").exists()
