"""What of the lab can be said without booting it."""

import tarfile
from pathlib import Path

from webapp.local.lab import package
from webapp.local.lab.machine import Machine
from webapp.local.lab.suite import differences, table

REPOSITORY = Path(__file__).parents[3]


def test_it_says_what_is_otherwise_than_before() -> None:
    before = {"setting.LAB1.scheduler": "none", "content.LAB1": "", "gone": "1"}
    after = {"setting.LAB1.scheduler": "mq-deadline", "content.LAB1": "", "new": "2"}
    assert differences(before, before) == []
    assert differences(before, after) == [
        "gone: 1 → (not there)",
        "new: (not there) → 2",
        "setting.LAB1.scheduler: none → mq-deadline",
    ]


def test_it_shows_points_in_equal_columns() -> None:
    point = {
        "layout": "md RAID 0", "file_system": "xfs", "scheduler": "none", "read_ahead_kb": "1024",
        "bytes_per_s": 12_340_000.0, "p99_ns": 88_100,
    }  # fmt: skip
    head, row = table([point])
    assert row.split("  ")[-1].strip() == "88"
    assert head.index("MB/s") == row.index("12.3")


def test_what_goes_into_the_guest_is_the_worker_and_all_that_it_needs(tmp_path: Path) -> None:
    package.pack(REPOSITORY, tmp_path / "guest.tar")
    with tarfile.open(tmp_path / "guest.tar") as tar:
        names = set(tar.getnames())
    assert {"worker/trial.py", "worker/tests/lab/sweep.py", "celery/__init__.py", "redis/__init__.py"} <= names
    assert {"msgspec/__init__.py", "pytest/__init__.py", "_pytest/__init__.py", "pluggy/__init__.py"} <= names
    assert not any(name.startswith(("django/", "webapp/")) for name in names)


def test_a_process_that_has_its_pid_by_now_is_not_the_machine(tmp_path: Path) -> None:
    machine = Machine(tmp_path, _pid=1, _ticks=12345)
    assert not machine.alive
