import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.engines.complete_files import CompleteFiles

SIZE = 65536


@pytest.fixture
def files(tmp_path: Path) -> CompleteFiles:
    return CompleteFiles(tmp_path / "files.db")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


@pytest.fixture
def fd(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_it_remembers_a_file_that_was_written_through(files: CompleteFiles, folder: Path, fd: int) -> None:
    (folder / "f").write_bytes(os.urandom(SIZE))
    assert not files.holds(fd, "f", size=SIZE, content="incompressible")
    files.add(fd, "f", size=SIZE, content="incompressible")
    assert files.holds(fd, "f", size=SIZE, content="incompressible")
    assert not files.holds(fd, "f", size=SIZE, content="zeroes")
    assert not files.holds(fd, "f", size=SIZE * 2, content="incompressible")


def test_it_does_not_take_another_file_for_it(files: CompleteFiles, folder: Path, fd: int) -> None:
    (folder / "f").write_bytes(os.urandom(SIZE))
    files.add(fd, "f", size=SIZE, content="incompressible")
    (folder / "g").write_bytes(os.urandom(SIZE))
    (folder / "g").rename(folder / "f")
    assert not files.holds(fd, "f", size=SIZE, content="incompressible")
    (folder / "f").unlink()
    assert not files.holds(fd, "f", size=SIZE, content="incompressible")


def test_it_does_not_take_a_file_with_holes(files: CompleteFiles, folder: Path, fd: int) -> None:
    (folder / "f").write_bytes(os.urandom(SIZE))
    files.add(fd, "f", size=SIZE, content="incompressible")
    with (folder / "f").open("r+b") as file:
        file.truncate(0)
        file.truncate(SIZE)
    assert not files.holds(fd, "f", size=SIZE, content="incompressible")


def test_it_does_not_follow_a_link(files: CompleteFiles, folder: Path, fd: int) -> None:
    (folder / "real").write_bytes(os.urandom(SIZE))
    (folder / "f").symlink_to("real")
    files.add(fd, "f", size=SIZE, content="incompressible")
    assert not files.holds(fd, "f", size=SIZE, content="incompressible")


def test_it_forgets_on_request(files: CompleteFiles, folder: Path, fd: int) -> None:
    (folder / "f").write_bytes(os.urandom(SIZE))
    files.add(fd, "f", size=SIZE, content="incompressible")
    files.forget_other_content(fd, "f", "incompressible")
    assert files.holds(fd, "f", size=SIZE, content="incompressible")
    files.forget_other_content(fd, "f", "zeroes")
    assert not files.holds(fd, "f", size=SIZE, content="incompressible")
