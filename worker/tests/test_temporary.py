"""The temporary folder of a stream: nothing of it is left, also after a worker that was killed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.journal import Journal, TemporaryFolder
from worker.temporary import drop_folders_in, remove_recorded, temporary_folder


class Scratch:
    """A target's directory and the worker's journal."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.data.mkdir()
        self.fd = os.open(self.data, os.O_DIRECTORY)
        self.journal = Journal(directory / "journal")

    @property
    def left(self) -> list[Path]:
        return list(self.data.iterdir())


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    made = Scratch(tmp_path)
    yield made
    made.journal.close()
    os.close(made.fd)


def test_a_folder_that_a_killed_worker_left_is_removed_at_the_next_start(scratch: Scratch) -> None:
    with temporary_folder("temporary.0", scratch.fd, scratch.journal):
        (recorded,) = scratch.journal.folders()
    assert recorded.path == str(scratch.data / "temporary.0")
    (scratch.data / "temporary.0" / "data").mkdir(parents=True)
    scratch.journal.save_folder(recorded)
    assert [item.restored for item in remove_recorded(scratch.journal)] == [True]
    assert (scratch.left, scratch.journal.folders()) == ([], ())


def test_a_folder_is_remembered_until_its_file_system_is_mounted(scratch: Scratch) -> None:
    with temporary_folder("temporary.0", scratch.fd, scratch.journal):
        (recorded,) = scratch.journal.folders()
    (scratch.data / "temporary.0").mkdir()
    scratch.journal.save_folder(recorded)
    mounted = scratch.data.rename(scratch.data.with_name("elsewhere"))
    for mount_point in (None, scratch.data):
        if mount_point:
            mount_point.mkdir()
        (item,) = remove_recorded(scratch.journal)
        assert (item.restored, scratch.journal.folders()) == (False, (recorded,))
        assert item.note.endswith("if it is gone for good.")
    other = os.open(scratch.data, os.O_RDONLY | os.O_DIRECTORY)
    with temporary_folder("temporary.0", other, scratch.journal):
        assert len(scratch.journal.folders()) == 2
    os.close(other)
    assert scratch.journal.folders() == (recorded,)
    scratch.data.rmdir()
    mounted.rename(scratch.data)
    assert [item.restored for item in remove_recorded(scratch.journal)] == [True]
    assert (scratch.left, scratch.journal.folders()) == ([], ())


def test_a_folder_goes_with_the_layout_that_contains_it(scratch: Scratch) -> None:
    for directory in ("/run/layout-1/mnt", "/run/layout-10/mnt"):
        scratch.journal.save_folder(TemporaryFolder(f"{directory}/temporary.0", "1:2"))
    drop_folders_in("/run/layout-1/mnt", scratch.journal)
    assert [folder.path for folder in scratch.journal.folders()] == ["/run/layout-10/mnt/temporary.0"]
