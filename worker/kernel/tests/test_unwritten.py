"""Unwritten parts of real files, on the file system of the tests and on tmpfs."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from worker.guard.tests import rig
from worker.kernel import files
from worker.kernel.files import shared_bytes, unwritten_bytes, unwritten_words

PAGE = 4096


@pytest.fixture(params=["disk", "tmpfs"])
def fd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """An empty file. tmpfs has no FIEMAP."""
    with TemporaryDirectory(dir="/dev/shm" if request.param == "tmpfs" else tmp_path) as folder:
        opened = os.open(Path(folder) / "file", os.O_RDWR | os.O_CREAT)
        yield opened
        os.close(opened)


def write(fd: int, first: int, pages: int) -> None:
    os.pwrite(fd, b"x" * PAGE * pages, first * PAGE)


def test_it_counts_holes(fd: int) -> None:
    os.ftruncate(fd, 100 * PAGE)
    assert unwritten_bytes(fd, 100 * PAGE) == 100 * PAGE
    write(fd, 20, 10)
    assert unwritten_bytes(fd, 100 * PAGE) == 90 * PAGE
    assert unwritten_bytes(fd, 25 * PAGE) == 20 * PAGE  # only the part that is read
    write(fd, 0, 100)
    assert unwritten_bytes(fd, 100 * PAGE) == 0


def test_it_counts_space_that_is_allocated_but_unwritten(fd: int) -> None:
    os.posix_fallocate(fd, 0, 100 * PAGE)
    assert unwritten_bytes(fd, 100 * PAGE) == 100 * PAGE
    write(fd, 0, 39)  # still in the page cache: the extents count as written once they are synced
    assert unwritten_bytes(fd, 100 * PAGE) == 61 * PAGE


def test_it_reads_more_extents_than_one_call_returns(fd: int) -> None:
    for number in range(1500):
        write(fd, 2 * number, 1)
    assert unwritten_bytes(fd, 3000 * PAGE) == 1500 * PAGE


def test_fiemap_and_seek_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 64 * PAGE)
    write(fd, 3, 5)
    write(fd, 60, 4)
    by_extents = unwritten_bytes(fd, 64 * PAGE)
    monkeypatch.setattr(files, "_extents", unsupported)
    assert unwritten_bytes(fd, 64 * PAGE) == by_extents == 55 * PAGE
    os.close(fd)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_it_is_correct_on_common_file_systems(kind: str, tmp_path: Path) -> None:
    """A copy that shares its extents is written; so are compressed extents and data in the inode."""
    options = ["-o", "compress-force=zstd"] if kind == "btrfs" else []
    with rig.loop(rig.sparse(tmp_path / "image", 320 * rig.MIB)) as device:
        rig.run(f"mkfs.{kind}", "-q", device)
        (tmp_path / "mnt").mkdir()
        rig.run("mount", *options, device, str(tmp_path / "mnt"))
        try:
            assert unwritten_on(tmp_path / "mnt") == [100, 90, 90, 0, 0, 0]
            assert shared_on(tmp_path / "mnt") == ([0, 0] if kind == "ext4" else [0, 40])
        finally:
            rig.unmount(tmp_path / "mnt")


def unwritten_on(folder: Path) -> list[float]:
    """Unwritten pages of a file with holes, written in part, preallocated, written; of a copy; of a tiny file."""
    fd = os.open(folder / "file", os.O_RDWR | os.O_CREAT)
    tiny = os.open(folder / "tiny", os.O_RDWR | os.O_CREAT)
    os.pwrite(tiny, b"hello", 0)
    os.ftruncate(fd, 100 * PAGE)
    found = [unwritten_bytes(fd, 100 * PAGE)]
    write(fd, 20, 10)
    found.append(unwritten_bytes(fd, 100 * PAGE))
    os.posix_fallocate(fd, 0, 100 * PAGE)
    found.append(unwritten_bytes(fd, 100 * PAGE))
    write(fd, 0, 100)
    found.append(unwritten_bytes(fd, 100 * PAGE))
    rig.run("cp", "--reflink=auto", str(folder / "file"), str(folder / "copy"))
    copy = os.open(folder / "copy", os.O_RDWR)
    found += [unwritten_bytes(copy, 100 * PAGE), unwritten_bytes(tiny, 5)]
    for each in (fd, tiny, copy):
        os.close(each)
    return [each / PAGE for each in found]


def shared_on(folder: Path) -> list[int | None]:
    """Pages that a file shares before and after 40 of them are cloned."""
    fd, copy = (os.open(folder / name, os.O_RDWR | os.O_CREAT) for name in ("cloned", "clone"))
    write(fd, 0, 100)
    os.fsync(fd)
    shared = [shared_bytes(fd, 100 * PAGE)]
    os.copy_file_range(fd, copy, 40 * PAGE)
    shared.append(shared_bytes(copy, 100 * PAGE))
    os.close(fd)
    os.close(copy)
    return [None if each is None else each // PAGE for each in shared]


def test_shared_bytes_are_unknown_without_fiemap(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_extents", unsupported)
    assert shared_bytes(fd, PAGE) is None


def unsupported(*_: object) -> None:
    raise OSError(errno.EOPNOTSUPP, "not supported")


@pytest.mark.parametrize(
    ("share", "words"), [(61, "61 % of /f is"), (100, "All of /f is"), (0.2, "Less than 1 % of /f is")]
)
def test_the_message_has_the_unwritten_share(share: float, words: str) -> None:
    assert unwritten_words("/f", round(share * 10), 1000).startswith(words)
