"""Settings of hardware that the lab's virtual storage server has: SCSI, SATA, NVMe, RAID 5, interrupts, irqbalance.

Only drives whose serial begins with LAB are touched; elsewhere these tests are skipped.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker import policy
from worker.contract.items import SettingRecord
from worker.contract.orders import SettingRequest
from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel import sysfs
from worker.kernel.targets import OpenTarget
from worker.settings import REGISTRY, session
from worker.settings.base import SettingFailed, SettingScope, subject_of

DRIVES = {sysfs.serial(name): name for name in sysfs.names() if sysfs.serial(name).startswith("LAB")}
pytestmark = [*rig.needs_root, pytest.mark.skipif(not DRIVES, reason="needs the lab's virtual storage server")]


class Drive:
    """A drive, a policy that allows everything, and a journal."""

    def __init__(self, directory: Path, device: str) -> None:
        names = [name for name, setting in REGISTRY.items() if setting.scope is not SettingScope.HOST]
        entry = {"id": "drive", "kind": "block", "path": f"/dev/{device}", "stable_id": sysfs.stable_id(device)}
        allowed = rig.load(directory, {**entry, "settings": names})
        host = tuple(name for name, setting in REGISTRY.items() if setting.scope is SettingScope.HOST)
        self.policy = policy.Policy(allowed.path, allowed.targets, host)
        self.device = device
        self.journal = Journal(directory / "journal.db")

    def apply_settings(self, **values: str) -> list[SettingRecord]:
        requests = [SettingRequest(name=name.replace("__", "."), value=value) for name, value in values.items()]
        open_targets = {0: OpenTarget(path=f"/dev/{self.device}", device=self.device, target="drive")}
        return session.apply_settings(requests, "run", open_targets, self.policy, self.journal)

    def read(self, name: str) -> str:
        return REGISTRY[name].read(subject_of(REGISTRY[name], self.device))

    def applies_and_restores(self, name: str, value: str) -> None:
        before = self.read(name)
        assert before != value
        self.apply_settings(**{name.replace(".", "__"): value})
        assert self.read(name) == value or REGISTRY[name].verify(
            subject_of(REGISTRY[name], self.device), value, self.read(name)
        )
        told = session.restore_run("run", self.journal)
        assert [item.restored for item in told if item.name == name] == [True]
        assert self.read(name) == before


def drive(directory: Path, serial: str) -> Drive:
    return Drive(directory, DRIVES[serial])


@pytest.mark.parametrize("serial", ["LABVS0", "LABHDD0", "LABINT0000"])
def test_it_sets_the_queue_depth_of_a_scsi_drive(tmp_path: Path, serial: str) -> None:
    found = drive(tmp_path, serial)
    found.applies_and_restores("queue_depth", str(max(1, int(found.read("queue_depth")) // 2)))


def test_it_notices_a_queue_depth_that_is_refused_or_clamped(tmp_path: Path) -> None:
    found = drive(tmp_path, "LABVS0")
    with pytest.raises(SettingFailed) as caught:
        found.apply_settings(queue_depth="100000")
    assert caught.value.code in ("setting_clamped", "setting_refused")
    session.restore_run("run", found.journal)


@pytest.mark.parametrize("serial", ["LABVS0", "LABSATA0", "LABHDD0", "LABSAM0002"])
def test_it_switches_the_drives_own_write_cache(tmp_path: Path, serial: str) -> None:
    found = drive(tmp_path, serial)
    other = {"write back": "write through", "write through": "write back"}[found.read("drive_write_cache")]
    found.applies_and_restores("drive_write_cache", other)


def test_it_says_that_an_nvme_drive_is_no_scsi_drive(tmp_path: Path) -> None:
    with pytest.raises(SettingFailed, match="not a SCSI or SATA drive"):
        drive(tmp_path, "LABNVME0").apply_settings(drive_write_cache="write back")


def test_it_switches_the_write_cache_of_an_nvme_controller(tmp_path: Path) -> None:
    found = drive(tmp_path, "LABNVME0")
    found.applies_and_restores("nvme.write_cache", "0" if found.read("nvme.write_cache") == "1" else "1")


def test_it_says_what_a_power_state_is_refused_for(tmp_path: Path) -> None:
    found = drive(tmp_path, "LABNVME0")
    assert found.read("nvme.power_state") == "0"
    with pytest.raises(SettingFailed) as caught:
        found.apply_settings(nvme__power_state="31")
    assert caught.value.code in ("setting_refused", "setting_clamped")


def test_it_reads_back_that_polling_was_not_switched(tmp_path: Path) -> None:
    found = drive(tmp_path, "LABNVME0")
    with pytest.raises(SettingFailed) as caught:
        found.apply_settings(io_poll="1" if found.read("io_poll") == "0" else "0")
    assert caught.value.code in ("setting_clamped", "setting_refused")


@pytest.mark.parametrize("value", ["cpu1", "spread", "local", "node0", "all"])
def test_it_moves_the_interrupts_of_a_raid_controller(tmp_path: Path, value: str) -> None:
    found = drive(tmp_path, "LABINT0000")
    before = found.read("irq_affinity")
    (record,) = found.apply_settings(irq_affinity=value)
    assert sysfs.PCI_ADDRESS.match(record.device)
    session.restore_run("run", found.journal)
    assert found.read("irq_affinity") == before


def test_two_drives_of_one_controller_cannot_want_different_interrupts(tmp_path: Path) -> None:
    found = drive(tmp_path, "LABINT0000")
    requests = [
        SettingRequest(name="irq_affinity", value=value, stream=stream) for stream, value in enumerate(("cpu0", "cpu1"))
    ]
    names = (DRIVES["LABINT0000"], DRIVES["LABINT0001"])
    open_targets = {
        stream: OpenTarget(path=f"/dev/{name}", device=name, target="drive") for stream, name in enumerate(names)
    }
    with pytest.raises(SettingFailed) as caught:
        session.apply_settings(requests, "run", open_targets, found.policy, found.journal)
    assert caught.value.code == "setting_conflict"


def test_it_says_that_the_kernel_manages_the_interrupts_of_nvme_queues(tmp_path: Path) -> None:
    found = drive(tmp_path, "LABNVME0")
    before = found.read("irq_affinity")
    with pytest.raises(SettingFailed, match="the kernel manages interrupts"):
        found.apply_settings(irq_affinity="cpu0")
    assert found.read("irq_affinity") == before


@pytest.fixture
def irqbalance() -> Iterator[None]:
    """A service of that name, which does nothing."""
    unit, program = Path("/run/systemd/system/irqbalance.service"), Path("/usr/local/sbin/irqbalance")
    rig.run("cp", "/bin/sleep", str(program))
    unit.write_text(f"[Service]\nExecStart={program} 600\n")
    try:
        rig.run("systemctl", "daemon-reload")
        rig.run("systemctl", "start", unit.name)
        yield
    finally:
        subprocess.run(["systemctl", "stop", unit.name], check=False, timeout=30)
        unit.unlink()
        program.unlink()
        rig.run("systemctl", "daemon-reload")


@pytest.mark.usefixtures("irqbalance")
def test_it_stops_irqbalance_before_it_moves_interrupts_and_starts_it_again(tmp_path: Path) -> None:
    found = drive(tmp_path, "LABINT0000")
    assert found.read("irqbalance") == "on"
    with pytest.raises(SettingFailed, match="also set irqbalance to off"):
        found.apply_settings(irq_affinity="cpu1")
    found.apply_settings(irq_affinity="cpu1", irqbalance="off")
    assert found.read("irqbalance") == "off"
    told = session.restore_run("run", found.journal)
    assert [(item.name, item.restored) for item in told] == [("irq_affinity", True), ("irqbalance", True)]
    assert found.read("irqbalance") == "on"


@pytest.fixture
def array(tmp_path: Path) -> Iterator[Drive]:
    """A RAID 5 over three loop devices."""
    with (
        rig.loop(rig.sparse(tmp_path / "a")) as one,
        rig.loop(rig.sparse(tmp_path / "b")) as two,
        rig.loop(rig.sparse(tmp_path / "c")) as three,
    ):
        options = (
            "--create",
            "/dev/md77",
            "--level=5",
            "--raid-devices=3",
            "--assume-clean",
            "--metadata=1.2",
            "--run",
        )
        rig.run("mdadm", *options, one, two, three)
        try:
            yield Drive(tmp_path, "md77")
        finally:
            rig.run("mdadm", "--stop", "/dev/md77")


@pytest.mark.parametrize(
    ("name", "value"), [("md.stripe_cache_size", "1024"), ("md.sync_speed_min", "5000"), ("md.sync_speed_max", "90000")]
)
def test_it_sets_up_an_array(array: Drive, name: str, value: str) -> None:
    array.applies_and_restores(name, value)


def test_it_says_which_array_setting_the_kernel_refuses(array: Drive) -> None:
    with pytest.raises(SettingFailed, match="Invalid argument"):
        array.apply_settings(md__stripe_cache_size="1")
