"""A partition is read back although the kernel may just be reading its table again."""

import pytest

from worker.journal import LayoutRecord
from worker.kernel import sysfs
from worker.layouts import building
from worker.layouts.building import read_back
from worker.layouts.steps import Built, LayoutFailed
from worker.recipes.layouts.commands import share_bytes
from worker.recipes.layouts.text import parse

LINE = "single share 80%"
DRIVE_BYTES = 2**30
SIZES = {"sda": DRIVE_BYTES, "sda1": share_bytes(DRIVE_BYTES, 80), "sda2": 2**20}
BUILT = Built(
    record=LayoutRecord(key="t1", run="r1", line=LINE, drives=(), mount_point=""),
    device="/dev/sda1",
    mount_point="",
    members=("sda",),
)


def _partitions(monkeypatch: pytest.MonkeyPatch, *told: tuple[str, ...]) -> None:
    """What the kernel lists, one answer after the other, then always the last."""
    answers = list(told)
    monkeypatch.setattr(sysfs, "partitions", lambda _: answers.pop(0) if len(answers) > 1 else answers[0])
    monkeypatch.setattr(sysfs, "size_bytes", SIZES.__getitem__)


def test_a_partition_that_is_missing_for_a_moment_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    _partitions(monkeypatch, (), (), ("sda1",))
    found = read_back(parse(LINE), BUILT)
    assert (found.words, found.wrong) == (LINE, ())


@pytest.mark.parametrize("told", [(), ("sda1", "sda2")])
def test_another_number_of_partitions_is_an_error(told: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    _partitions(monkeypatch, told)
    monkeypatch.setattr(building, "UDEV_LIMIT_S", 0)
    with pytest.raises(LayoutFailed, match=f"sda has {len(told)} partitions instead of 1"):
        read_back(parse(LINE), BUILT)
