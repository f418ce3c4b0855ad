"""What goes wrong in mid-trial and in mid-setting, on drives behind a RAID controller."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from worker.contract.items import Finished, Item, KernelLog, Outcome, Sample, StreamStarted
from worker.contract.orders import TrialOrder
from worker.contract.workload import FioWorkload, Pattern, Stream, TargetKind, TargetRef
from worker.engines.complete_files import CompleteFiles
from worker.guard.tests import rig
from worker.journal import Journal
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.process.control import Control
from worker.settings import REGISTRY
from worker.settings.base import subject_of
from worker.tests.lab.drives import allow, by_serial
from worker.tests.waiting import until

SERIAL = "LABSAM0003"
pytestmark = [*rig.needs_root, pytest.mark.skipif(SERIAL not in by_serial(), reason="needs a lab machine")]


class Lab:
    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.state.mkdir(mode=0o700)
        self.policy = allow(directory, SERIAL)
        self.items: list[Item] = []

    def order(self, runtime_s: int) -> TrialOrder:
        entry = self.policy.targets[0]
        target = TargetRef(
            id=entry.id, kind=TargetKind.BLOCK, path=entry.path, stable_id=entry.stable_id or "", serial=SERIAL
        )
        work = FioWorkload(pattern=Pattern.RANDREAD, runtime_s=runtime_s, iodepth=4, prefill=False)
        now = time.time()
        return TrialOrder(
            host="lab", attempt="a1", issued_at=now, expires_at=now + 600, run="r1", trial="t1",
            streams=(Stream(number=0, target=target, workload=work),), silence_limit_s=60, total_limit_s=120,
        )  # fmt: skip

    def trial(self, runtime_s: int, emit: Callable[[Item], None] | None = None) -> Finished:
        journal = Journal(self.state / "journal.db")
        host = HostContext(self.state, self.policy.path, journal, CompleteFiles(self.state / "files.db"))
        context = OrderContext(host=host, emit=emit or self.items.append, control=Control("a1"))
        return carry_out(self.order(runtime_s), context)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def there() -> bool:
    return SERIAL in by_serial()


@pytest.fixture
def pulled() -> Iterator[None]:
    """Whatever was taken away is found again."""
    yield
    for scan in Path("/sys/class/scsi_host").glob("host*/scan"):
        scan.write_text("- - -")
    until(there, 60)
    subprocess.run(["udevadm", "settle"], check=False, timeout=60)


@pytest.mark.usefixtures("pulled")
def test_a_drive_that_goes_away_in_mid_trial_fails_the_trial_by_name(lab: Lab) -> None:
    device = by_serial()[SERIAL]

    def pull() -> None:
        until(lambda: any(isinstance(item, Sample) for item in lab.items), 60)
        Path(f"/sys/block/{device}/device/delete").write_text("1")

    puller = threading.Thread(target=pull)
    puller.start()
    end = lab.trial(runtime_s=60)
    puller.join()
    assert end.outcome is Outcome.FAILED
    assert end.code == "device_gone"  # whether fio or the guard sees it first
    assert device in end.message


def test_a_trial_names_its_controllers_interrupts(lab: Lab) -> None:
    assert lab.trial(runtime_s=2).outcome is Outcome.DONE
    started = next(item for item in lab.items if isinstance(item, StreamStarted))
    indexes = [
        open_target for open_target, sensor in enumerate(started.sensors) if sensor.name.startswith("megaraid_sas ")
    ]
    assert len(indexes) == 1
    samples = [item for item in lab.items if isinstance(item, Sample)]
    assert all(len(sample.telemetry) == len(started.sensors) for sample in samples)
    assert sum(sample.telemetry[indexes[0]] or 0 for sample in samples) > 0


def test_what_the_kernel_says_of_the_drive_meanwhile_comes_with_the_trial(lab: Lab) -> None:
    device = by_serial()[SERIAL]

    def emit(item: Item) -> None:
        lab.items.append(item)
        if isinstance(item, StreamStarted):
            Path("/dev/kmsg").write_text(f"<3>sd 0:0:0:0: [{device}] tag#1 timing out command, waited 30s (a test)\n")

    assert lab.trial(runtime_s=2, emit=emit).outcome is Outcome.DONE
    lines = [line.text for item in lab.items if isinstance(item, KernelLog) for line in item.lines]
    assert [line for line in lines if line.endswith("(a test)")]


@pytest.mark.parametrize(
    ("name", "value"),
    [("scheduler", ("none", "mq-deadline")), ("read_ahead_kb", ("256", "512")), ("irq_affinity", ("cpu0", "cpu1"))],
)
def test_a_worker_that_is_killed_in_mid_setting_is_made_good(lab: Lab, name: str, value: tuple[str, str]) -> None:
    """Killed after the write and before it was read back: the next start puts it back."""
    device = by_serial()[SERIAL]
    setting = REGISTRY[name]
    subject = subject_of(setting, device)
    before = setting.read(subject)
    wanted = value[1] if setting.verify(subject, value[0], before) else value[0]
    command = [
        sys.executable,
        "-m",
        "worker.tests.lab.killed_worker",
        name,
        device,
        str(lab.state),
        str(lab.policy.path),
    ]
    died = subprocess.run(command, check=False, timeout=60, env={**os.environ, "VALUE": wanted})
    assert died.returncode == -signal.SIGKILL
    assert setting.read(subject) != before
    paths = ("--state", str(lab.state), "--policy", str(lab.policy.path))
    put_back = subprocess.run([sys.executable, "-m", "worker", *paths, "restore", "--yes"], check=False, timeout=60)
    assert put_back.returncode == 0
    assert setting.read(subject) == before
