"""Readings of folders that look like procfs and sysfs, and of this host's own.

What the folders hold is as the kernel documents it (Documentation/hwmon, powercap, block/stat, proc(5));
hardware that has such sensors was not at hand.
"""

import os
import shutil
from pathlib import Path

import pytest

from worker import guard
from worker.contract.items import Sensor, SensorKind
from worker.guard.tests import rig
from worker.kernel import sysfs
from worker.kernel.counters import read_counters, sample_of_all
from worker.kernel.targets import OpenTarget
from worker.telemetry.kernel_log import KernelWatch
from worker.telemetry.sources import (
    BUFFER_BYTES,
    CpuTemperatures,
    Energy,
    OpenFile,
    ProcStat,
    SlowSensors,
    Source,
    Telemetry,
    WaitingMemory,
    drive_inputs,
    every_source,
    read_dcmi,
)
from worker.tests.waiting import until


class Host:
    """A folder with files, written as the kernel shows them."""

    def __init__(self, directory: Path) -> None:
        self.sys = directory / "sys"
        self.proc = directory / "proc"
        self.dev = directory / "dev"
        for each in (self.sys, self.proc, self.dev):
            each.mkdir()

    def write(self, path: str, text: str) -> None:
        """In open_target, so that a file that is open shows it."""
        file = self.sys.parent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def link(self, path: str, to: str) -> None:
        at = self.sys.parent / path
        at.parent.mkdir(parents=True, exist_ok=True)
        (self.sys.parent / to).mkdir(parents=True, exist_ok=True)
        at.symlink_to(self.sys.parent / to)

    def scsi_drive(self, name: str, pci: str = "0000:01:00.0") -> str:
        open_target = f"sys/devices/pci0000:00/{pci}/host0/target0:0:0/{name}-scsi"
        self.link(f"sys/class/block/{name}", f"{open_target}/block/{name}")
        self.link(f"sys/class/block/{name}/device", open_target)
        return open_target


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def at(device: str) -> OpenTarget:
    return OpenTarget(path=f"/dev/{device}", device=device)


def named(source: Source) -> dict[tuple[str, str], float | None]:
    values = source.read()
    assert len(values) == len(source.sensors)
    return {(s.kind.value, s.name): value for s, value in zip(source.sensors, values, strict=True)}


# ---- processors and interrupts

BEFORE = (
    "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 50 800 20 10 20 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\nintr 5000 0 0 40 60\n"
)
AFTER = (
    "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 120 10 70 840 25 12 23 0 0 0\ncpu1 0 0 0 1100 0 0 0 0 0 0\nintr 9000 0 0 90 160\n"
)


def test_it_tells_the_shares_of_each_core(host: Host) -> None:
    host.write("proc/stat", BEFORE)
    source = ProcStat((), host.proc, host.sys)
    host.write("proc/stat", AFTER)
    values = named(source)
    shares = [values[f"cpu_{kind}", "cpu0"] for kind in ("user", "system", "irq", "iowait")]
    assert shares == [30, 20, 5, 5]
    assert values["cpu_user", "cpu1"] == 0
    assert ("cpu_steal", "cpu0") not in values  # nobody ever took time away


def test_it_tells_stolen_time_where_there_is_a_hypervisor(host: Host) -> None:
    host.write("proc/stat", "cpu0 0 0 0 100 0 0 0 7\nintr 0\n")
    source = ProcStat((), host.proc, host.sys)
    host.write("proc/stat", "cpu0 0 0 0 175 0 0 0 32\nintr 0\n")
    assert named(source)["cpu_steal", "cpu0"] == 25


def test_a_core_that_was_taken_off_line_has_no_value(host: Host) -> None:
    host.write("proc/stat", BEFORE)
    source = ProcStat((), host.proc, host.sys)
    host.write("proc/stat", AFTER.replace("cpu1", "cpu7"))
    assert named(source)["cpu_user", "cpu1"] is None


def test_it_counts_interrupts_of_the_controller_under_the_drive(host: Host) -> None:
    open_target = host.scsi_drive("sda")
    pci = open_target.partition("/host0")[0]
    host.link("sys/bus/pci/devices/0000:01:00.0", pci)
    host.link(f"{pci}/driver", "sys/bus/pci/drivers/megaraid_sas")
    host.write(f"{pci}/msi_irqs/2", "msix\n")
    host.write(f"{pci}/msi_irqs/3", "msix\n")
    host.write("proc/stat", BEFORE)
    source = ProcStat(("sda",), host.proc, host.sys)
    source._at -= 2  # two seconds ago
    host.write("proc/stat", AFTER)
    values = named(source)
    assert values["interrupts", "all"] == pytest.approx(2000, rel=0.05)
    assert values["interrupts", "megaraid_sas 0000:01:00.0"] == pytest.approx(75, rel=0.05)


# ---- members, memory


def test_it_tells_how_busy_the_drives_under_an_array_are(host: Host) -> None:
    host.write("sys/class/block/md0/stat", "0 " * 17)
    for name in ("sda", "sdb"):
        host.scsi_drive(name)
        host.link(f"sys/class/block/md0/slaves/{name}", f"sys/devices/pci0000:00/{name}")
        host.write(f"sys/class/block/{name}/stat", "0 " * 17)
    host.write("proc/stat", BEFORE)
    members, *_ = every_source([at("md0")], sys=host.sys, proc=host.proc, dev=host.dev)
    assert {sensor.name for sensor in members.sensors} == {"sda", "sdb"}
    host.write("sys/class/block/sda/stat", "10 0 80 5 0 0 0 0 0 100000 320000 " + "0 " * 6)
    values = named(members)
    assert values["utilisation", "sda"] == 100  # never more, however the clocks stand
    assert values["utilisation", "sdb"] == 0
    assert values["queue_depth", "sda"]
    (host.sys / "class/block/sdb/stat").write_text("")  # unplugged: reading fails, which looks like nothing
    assert named(members)["utilisation", "sdb"] is None


def test_a_drive_whose_counters_are_off_is_left_out(host: Host) -> None:
    for name, counts in (("sda", "1"), ("sdb", "0")):
        host.scsi_drive(name)
        host.link(f"sys/class/block/md0/slaves/{name}", f"sys/devices/pci0000:00/{name}")
        host.write(f"sys/class/block/{name}/queue/iostats", counts)
        host.write(f"sys/class/block/{name}/stat", "0 " * 17)
    members, *_ = every_source([at("md0")], sys=host.sys, proc=host.proc, dev=host.dev)
    assert {sensor.name for sensor in members.sensors} == {"sda"}


def test_a_drive_that_has_a_stream_of_its_own_and_is_under_another_is_told(host: Host) -> None:
    for name in ("sda", "sdb"):
        host.scsi_drive(name)
        host.link(f"sys/class/block/md0/slaves/{name}", f"sys/devices/pci0000:00/{name}")
        host.write(f"sys/class/block/{name}/stat", "0 " * 17)
    members, *_ = every_source([at("md0"), at("sda")], sys=host.sys, proc=host.proc, dev=host.dev)
    assert {sensor.name for sensor in members.sensors} == {"sda", "sdb"}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.btrfs"), reason="needs root and btrfs-progs")
def test_it_tells_every_drive_of_a_btrfs_and_sums_what_they_did(tmp_path: Path) -> None:
    files = [rig.sparse(tmp_path / name, 256 * rig.MIB) for name in "ab"]
    with rig.loop(files[0]) as one, rig.loop(files[1]) as two:
        rig.run("mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1", one, two)
        with rig.mounted(one, tmp_path / "point", fresh=False) as point:
            point.chmod(0o700)
            allowed = rig.load(tmp_path, {"id": "dir", "kind": "directory", "path": str(point)})
            with guard.admit(rig.stream(allowed, writes=True), allowed, ()) as open_target:
                names = tuple(sorted(Path(device).name for device in (one, two)))
                assert (open_target.device, open_target.devices) == ("", names)
                members, *others = every_source([open_target])
                before = [read_counters(name) for name in open_target.devices]
                # the kernel counts busy time in ticks of 4 ms; what takes less may count as nothing
                (point / "data").write_bytes(16 * os.urandom(4 * rig.MIB))
                os.sync()
                after = [read_counters(name) for name in open_target.devices]
                values = named(members)
                for source in (members, *others):
                    source.close()
    assert set(values) == {(kind, name) for name in names for kind in ("utilisation", "queue_depth")}
    assert all(values["utilisation", name] for name in names)
    whole = sample_of_all(names, before, after)
    assert whole is not None
    each = [sample_of_all((name,), (old,), (new,)) for name, old, new in zip(names, before, after, strict=True)]
    parts = [part for part in each if part is not None]
    assert (whole.device, len(parts)) == (", ".join(names), 2)
    assert whole.write_bytes == sum(part.write_bytes for part in parts) >= 64 * rig.MIB
    assert all(part.write_bytes >= rig.MIB for part in parts)  # striped
    assert whole.queue_depth == pytest.approx(sum(part.queue_depth for part in parts))
    assert whole.utilisation_percent == pytest.approx(sum(part.utilisation_percent for part in parts) / 2)
    assert sample_of_all(names, (before[0], None), after) is None


def test_it_tells_the_memory_that_waits_in_bytes(host: Host) -> None:
    host.write(
        "proc/meminfo", "MemTotal:  100 kB\nDirty:             12 kB\nWriteback:          0 kB\nWritebackTmp: 7 kB\n"
    )
    assert named(WaitingMemory(host.proc)) == {("memory", "dirty"): 12288, ("memory", "writeback"): 0}


# ---- temperatures


def test_it_tells_the_package_of_a_processor_and_not_its_cores(host: Host) -> None:
    for number, (label, value) in enumerate((("Package id 0", "55000"), ("Core 0", "54000")), 1):
        host.write(f"sys/class/hwmon/hwmon2/temp{number}_label", label)
        host.write(f"sys/class/hwmon/hwmon2/temp{number}_input", value)
    host.write("sys/class/hwmon/hwmon2/name", "coretemp")
    assert named(CpuTemperatures(host.sys)) == {("temperature", "CPU Package id 0"): 55}


def test_it_tells_two_processors_with_the_same_label_apart(host: Host) -> None:
    for number, value in ((0, "41500"), (1, "43000")):
        host.link(f"sys/class/hwmon/hwmon{number}/device", f"sys/devices/pci0000:00/0000:00:{18 + number}.3")
        host.write(f"sys/class/hwmon/hwmon{number}/name", "k10temp")
        host.write(f"sys/class/hwmon/hwmon{number}/temp1_label", "Tctl")
        host.write(f"sys/class/hwmon/hwmon{number}/temp1_input", value)
    assert named(CpuTemperatures(host.sys)) == {
        ("temperature", "CPU Tctl 0000:00:18.3"): 41.5,
        ("temperature", "CPU Tctl 0000:00:19.3"): 43,
    }


def drive_sensors(host: Host) -> None:
    open_target = host.scsi_drive("sda")
    host.link("sys/class/hwmon/hwmon0/device", open_target)
    host.write("sys/class/hwmon/hwmon0/name", "drivetemp")
    host.write("sys/class/hwmon/hwmon0/temp1_input", "31000")
    host.link("sys/class/block/nvme0n1", "sys/devices/pci0000:00/0000:02:00.0/nvme/nvme0/nvme0n1")
    host.link("sys/class/hwmon/hwmon1/device", "sys/devices/pci0000:00/0000:02:00.0/nvme/nvme0")
    host.write("sys/class/hwmon/hwmon1/name", "nvme")
    host.write("sys/class/hwmon/hwmon1/temp1_input", "38850")


def test_it_finds_the_sensors_of_the_drives_under_the_target(host: Host) -> None:
    drive_sensors(host)
    found = drive_inputs(["sda", "nvme0n1"], host.sys)
    assert {name: ask() for name, ask in found.items()} == {"sda": 31, "nvme0n1": 38.9}
    assert set(drive_inputs(["nvme0n1"], host.sys)) == {"nvme0n1"}


def test_it_finds_a_drive_that_is_one_of_several_ways(host: Host) -> None:
    drive_sensors(host)
    host.link("sys/devices/pci0000:00/0000:02:00.0/nvme/nvme0/nvme5c0n1", "sys/devices/nvme5c0n1")
    assert set(drive_inputs(["nvme5n1"], host.sys)) == {"nvme5n1"}


def test_a_drive_is_asked_now_and_then_and_its_value_told_once(host: Host) -> None:
    drive_sensors(host)
    source = SlowSensors(["sda"], host.sys, host.dev)
    until(lambda: source._fresh)
    assert named(source) == {("temperature", "sda"): 31}
    assert named(source) == {("temperature", "sda"): None}
    source.close()


# ---- power

DCMI = """
    Instantaneous power reading:                   220 Watts
    Minimum during sampling period:                 18 Watts
    Maximum during sampling period:                438 Watts
    Average power reading over sample period:      219 Watts
    IPMI timestamp:                           Tue Nov 26 12:29:50 2019
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated
"""


def test_it_reads_ipmitools_output() -> None:
    """As ipmitool's own manual and sources print it."""
    assert read_dcmi(DCMI) == 220
    assert read_dcmi(DCMI.replace("activated", "deactivated")) is None
    assert read_dcmi("DCMI request failed because: Invalid command (c1)") is None


def test_it_tells_the_watts_of_packages_and_their_memory(host: Host) -> None:
    zones = (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:0:1", "dram"))
    for zone, name in zones:
        host.write(f"sys/class/powercap/{zone}/name", name)
        host.write(f"sys/class/powercap/{zone}/energy_uj", "262143000000")
        host.write(f"sys/class/powercap/{zone}/max_energy_range_uj", "262143328850")
    source = Energy(host.sys)
    source._at -= 2
    host.write("sys/class/powercap/intel-rapl:0/energy_uj", "262143300000")
    host.write("sys/class/powercap/intel-rapl:0:1/energy_uj", "1671150")  # began anew
    values = named(source)
    assert values == {
        ("power", "package-0"): pytest.approx(0.15, abs=0.06),
        ("power", "package-0 dram"): pytest.approx(1.0, abs=0.06),
    }


# ---- all of them


def test_sensors_that_are_missing_are_missing(host: Host) -> None:
    with Telemetry(every_source([at("sda")], sys=host.sys, proc=host.proc, dev=host.dev), KernelWatch()) as telemetry:
        assert telemetry.sensors == ()
        assert telemetry.take() == ()


def test_a_file_longer_than_the_room_for_it_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * (3 * BUFFER_BYTES))
    file = OpenFile(tmp_path / "long")
    assert len(file.read()) == 3 * BUFFER_BYTES
    file.close()


def test_it_reads_this_host() -> None:
    with Telemetry(every_source(map(at, sysfs.names())), KernelWatch()) as telemetry:
        cores = {sensor.name for sensor in telemetry.sensors if sensor.kind is SensorKind.CPU_USER}
        assert len(cores) == os.cpu_count()
        values = telemetry.take()
        assert len(values) == len(telemetry.sensors)
        assert values[telemetry.sensors.index(Sensor(kind=SensorKind.MEMORY, name="dirty"))] is not None
        assert (values[telemetry.sensors.index(Sensor(kind=SensorKind.INTERRUPTS, name="all"))] or 0) >= 0
