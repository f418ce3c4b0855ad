"""A feature that could not be tried is not taken for a missing one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.contract.workload import KIB, FioWorkload, IoEngine, Pattern
from worker.engines.fio import probe
from worker.kernel import sysfs
from worker.kernel.tests.tree import Tree
from worker.process.run import ToolError, ToolOutput

KILLED = "fio was killed together with its supervisor."


class Fio:
    """Answers each call with the next of `answers`, the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[ToolOutput | ToolError] = []
        self.calls = 0

    def ask(self, _program: str, *_arguments: str, **_options: object) -> ToolOutput:
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if isinstance(answer, ToolError):
            raise answer
        return answer


@pytest.fixture
def fio(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fio]:
    made = Fio()
    monkeypatch.setattr(probe, "ask", made.ask)
    monkeypatch.setattr(probe, "installation", lambda: "/fio@1")
    for cached in (probe._tried, probe._told_version):
        cached.cache_clear()
    yield made
    for cached in (probe._tried, probe._told_version):
        cached.cache_clear()


WORKS = ToolOutput(0, "", "")
FAILS = ToolOutput(1, "fio: engine libaio not loadable\n", "")


def test_it_is_tried_again_at_once(fio: Fio) -> None:
    fio.answers = [ToolError(KILLED), WORKS]
    assert probe.engine_problem(IoEngine.LIBAIO) == ""


def test_two_failed_tries_are_reported_and_not_cached(fio: Fio) -> None:
    fio.answers = [ToolError(KILLED), ToolError(KILLED), WORKS]
    assert probe.engine_problem(IoEngine.LIBAIO) == f"two tries had no result: {KILLED}"
    assert probe.engine_problem(IoEngine.LIBAIO) == ""


def test_a_missing_engine_is_tried_once(fio: Fio) -> None:
    fio.answers = [FAILS]
    assert probe.engine_problem(IoEngine.LIBAIO) == "fio says: fio: engine libaio not loadable"
    assert probe.engine_problem(IoEngine.LIBAIO) == "fio says: fio: engine libaio not loadable"
    assert fio.calls == 1


@pytest.mark.parametrize(("release", "works"), [("5.19.0-1", True), ("6.1.0-13-amd64", True), ("5.15.0", False)])
def test_nvme_commands_need_fio_and_the_kernel(
    fio: Fio, monkeypatch: pytest.MonkeyPatch, release: str, works: bool
) -> None:
    """Nothing is tried, because the host may have no NVMe drive."""
    uname = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*uname[:2], release, *uname[3:])))
    fio.answers = [WORKS]
    assert (probe.engine_problem(IoEngine.IO_URING_CMD) == "") is works
    assert fio.calls == works


def nvme_drive(root: Path) -> Tree:
    tree = Tree(root)
    place = "pci0000:00/nvme/nvme0"
    tree.add("nvme0n1", place, "259:0", queue__max_hw_sectors_kb="512", queue__max_segments="127")
    tree.add("nvme0n1p1", f"{place}/nvme0n1", "259:1", partition="1")
    (tree.sys / "devices" / place / "nvme0n1/device").symlink_to(tree.sys / "devices" / place)
    generic = tree.sys / "class/nvme-generic/ng0n1"
    generic.mkdir(parents=True)
    (generic / "dev").write_text("237:0\n")
    (generic / "device").symlink_to(tree.sys / "devices" / place)
    return tree


@pytest.mark.parametrize(
    ("device", "block_bytes", "words"),
    [
        ("nvme0n1", 4096, ""),
        ("nvme0n1", 508 * KIB, ""),
        ("nvme0n1", 512 * KIB, "at most 508 KiB"),  # as measured on QEMU's drive: some commands fail with EINVAL
        ("nvme0n1p1", 4096, "not a whole NVMe drive"),
        ("sda", 4096, "not a whole NVMe drive"),
        ("", 4096, "not a whole NVMe drive"),
    ],
)
def test_nvme_commands_go_to_a_whole_drive(tmp_path: Path, device: str, block_bytes: int, words: str) -> None:
    work = FioWorkload(pattern=Pattern.READ, ioengine=IoEngine.IO_URING_CMD, block_bytes=block_bytes)
    problem = probe.passthrough_problem(work, device, nvme_drive(tmp_path).sys)
    assert words in problem
    assert bool(words) == bool(problem)


def test_a_generic_device_of_another_controller_is_not_used(tmp_path: Path) -> None:
    tree = nvme_drive(tmp_path)
    assert sysfs.nvme_generic("nvme0n1", tree.sys) == "ng0n1"
    link = tree.sys / "class/nvme-generic/ng0n1/device"
    link.unlink()
    link.symlink_to(tree.sys / "devices/pci0000:00")
    assert sysfs.nvme_generic("nvme0n1", tree.sys) == ""


def test_an_unknown_version_is_asked_for_again(fio: Fio) -> None:
    fio.answers = [ToolError(KILLED), ToolOutput(0, "fio-3.33\n", "")]
    assert (probe.fio_version(), probe.fio_version(), probe.fio_version()) == ("", "fio-3.33", "fio-3.33")
    assert fio.calls == 2
