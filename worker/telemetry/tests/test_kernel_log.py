"""Which of the kernel's lines belong to a trial."""

import os
import time
import uuid
from pathlib import Path

import pytest

from worker.contract.items import KernelLine
from worker.guard.tests import rig
from worker.kernel import sysfs
from worker.kernel.targets import OpenTarget
from worker.telemetry.kernel_log import (
    MAX_LINES,
    MAX_OTHER_LINES,
    KernelNames,
    KernelWatch,
    is_storage_problem,
    names_at,
    names_in,
)
from worker.tests.waiting import until

TROUBLES = (
    (4, "nvme nvme0: I/O 12 QID 3 timeout, aborting"),
    (4, "nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10"),
    (6, "nvme0n1: I/O Cmd(0x2) @ LBA 256, 8 blocks, I/O Error (sct 0x2 / sc 0x81)"),
    (3, "blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0"),
    (3, "Buffer I/O error on dev dm-0, logical block 0, async page read"),
    (6, "sd 0:2:1:0: [sdb] tag#17 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s"),
    (6, "sd 0:2:1:0: [sdb] tag#17 Sense Key : Medium Error [current]"),
    (3, "ata1.00: failed command: READ FPDMA QUEUED"),
    (3, "ata3: hard resetting link"),
    (4, "megaraid_sas 0000:01:00.0: FW in FAULT state Fault code:0x10000"),
    (6, "megaraid_sas 0000:01:00.0: 1234 (719857s/0x0020/CRIT) - Adapter reset"),
    (6, "mpt3sas_cm0: log_info(0x31110e03): originator(PL), code(0x11), sub_code(0x0e03) device reset"),
    (2, "md/raid1:md0: Disk failure on sdb, disabling device."),
    (3, "XFS (dm-3): log I/O error -5"),
    (2, "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0"),
    (4, "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0"),
    (3, "INFO: task fio:1234 blocked for more than 120 seconds."),
)
OTHERS = (
    (6, "sd 0:0:0:0: [sdb] Attached SCSI disk"),
    (6, "loop0: detected capacity change from 0 to 131072"),
    (6, "EXT4-fs (loop0): mounted filesystem with ordered data mode. Quota mode: none."),
    (6, "XFS (sdb): Ending clean mount"),
    (6, "md/raid0:md0: md_size is 2093056 sectors."),
    (3, "usb 1-1: device descriptor read/64, error -71"),
    (4, "e1000e 0000:00:19.0 eth0: Reset adapter unexpectedly"),
    (6, "audit: type=1400 apparmor denied name=/var/lib/md failed"),
)


@pytest.mark.parametrize(("level", "text"), TROUBLES)
def test_it_knows_trouble_with_storage(level: int, text: str) -> None:
    assert is_storage_problem(level, text)


@pytest.mark.parametrize(("level", "text"), OTHERS)
def test_it_leaves_out(level: int, text: str) -> None:
    assert not is_storage_problem(level, text)


def record(sequence: int, text: str = "ata1: hard resetting link") -> str:
    return f"3,{sequence},1500000,-;{text}\n SUBSYSTEM=scsi\n"


def test_it_gives_the_kernels_own_number_and_time() -> None:
    watch = KernelWatch()
    now_us = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
    line = watch.take(f"3,17,{now_us},-;ata1: hard resetting link")
    assert line is not None
    assert (line.sequence, line.level, line.text) == (17, 3, "ata1: hard resetting link")
    assert line.at == pytest.approx(time.time(), abs=1)


def test_a_line_is_never_older_than_the_trial_nor_of_the_future() -> None:
    """The log's clock runs free: after weeks it is off by seconds or more."""
    watch = KernelWatch()
    began = time.time()
    early, late = watch.take(record(17)), watch.take("3,18,999999999999999,-;ata1: hard resetting link")
    assert early is not None
    assert late is not None
    assert began - 1 < early.at <= late.at <= time.time()


def test_it_says_what_was_overwritten_before_it_could_be_read() -> None:
    watch = KernelWatch()
    assert watch.take(record(17, "nothing of ours")) is None
    line = watch.take(record(40, "nothing of ours either"))
    assert line is not None
    assert line.text.startswith("22 records before this one were overwritten")


# A trial on sda, nvme0n1, and on md0 over dm-1.
NAMES = KernelNames(
    ("sda", "host0", "scsi0", "target0:0:0", "0:0:0:0", "ata1", "0000:00:1f.2", "nvme0", "nvme0n1", "nvme0c0n1",
     "0000:01:00.0", "0000:00:01.0", "mpt3sas_cm0", "arcmsr0", "end_device-0:1", "rport-2:0-3", "md0", "dm-1",
     "mapper/vg-data", "loop6", "cciss!c0d0"),
    disks=("sda", "nvme0n1", "loop6"), numbers=("253:1", "8:0"),
)  # fmt: skip
OURS = (
    "nvme nvme0: I/O 12 QID 3 timeout, aborting",
    "nvme0n1: I/O Cmd(0x2) @ LBA 256, 8 blocks, I/O Error (sct 0x2 / sc 0x81)",
    "nvme0c0n1: I/O Cmd(0x2) @ LBA 256, 8 blocks, I/O Error (sct 0x2 / sc 0x81)",
    "block nvme0n1: no available path - failing I/O",
    "critical medium error, dev nvme0n1p2, sector 0 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
    "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
    "I/O error, dev sda, sector 0 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2",
    "Buffer I/O error on dev sda1, logical block 0, async page read",
    "I/O error, dev /dev/sda, sector 0",
    "sd 0:0:0:0: [sda] tag#17 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s",
    "sd 0:0:0:0: tag#17 timing out command, waited 30s",
    "scsi target0:0:0: handle(0x0009), sas_address(0x4433221100000000), phy(0)",
    "scsi host0: resetting",
    "scsi0:0:1:0: Attempting to queue an ABORT message: CDB: 0x2a",
    "ata1.00: failed command: READ FPDMA QUEUED",
    "ata1.00: exception Emask 0x0 SAct 0x10 SErr 0x0 action 0x6 frozen",
    "ata1: hard resetting link",
    "ahci 0000:00:1f.2: port does not support device sleep, failed",
    "pcieport 0000:00:01.0: AER: Corrected error received: 0000:02:00.0",  # the way is shared
    "mpt3sas_cm0: log_info(0x31110e03): originator(PL), code(0x11), sub_code(0x0e03) device reset",
    "megaraid_sas 0000:01:00.0: FW in FAULT state Fault code:0x10000 subcode:0x0 func:megasas_wait_for_outstanding",
    "arcmsr0: abort device command of scsi id = 0 lun = 0",
    "md/raid1:md0: Disk failure on sdb, disabling device.",
    "md: md0: recovery interrupted.",
    "INFO: task md0_raid1:612 blocked for more than 120 seconds.",
    "INFO: task jbd2/sda1-8:412 blocked for more than 120 seconds.",
    "Aborting journal on device dm-1-8.",
    "JBD2: I/O error when updating journal superblock for sda1-8.",
    "device-mapper: multipath: 253:9: Failing path 8:0.",
    "EXT4-fs (loop6): Remounting filesystem read-only",
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
    "XFS (dm-1): log I/O error -5",
    'XFS (loop6p1): metadata I/O error in "xfs_read_agi" at daddr 0x2 len 1 error 5',
    "BTRFS error (device dm-1 state EA): bdev /dev/mapper/vg-data errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
    "BTRFS error (device dm-7): bdev /dev/mapper/vg-data errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
    "cciss/c0d0: I/O error",
)
ELSEWHERE = (
    "nvme nvme1: I/O 12 QID 3 timeout, aborting",
    "nvme nvme10: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10",
    "nvme1n1p2: I/O Cmd(0x2) @ LBA 256, 8 blocks, I/O Error (sct 0x2 / sc 0x81)",
    "nvme0n2: I/O Cmd(0x2) @ LBA 256, 8 blocks, I/O Error (sct 0x2 / sc 0x81)",
    "nvme2c2n1: I/O error",
    "I/O error, dev sdaa, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
    "blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
    "I/O error, dev loop1, sector 0 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
    "I/O error, dev loop14, sector 0 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
    "I/O error, dev loop66, sector 0 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
    "loop: Write error at byte offset 4096, length 4096.",
    "EXT4-fs (loop14): I/O error while writing superblock",
    "Buffer I/O error on dev sdb1, logical block 0, async page read",
    "sd 2:0:0:0: [sdb] tag#17 FAILED Result: hostbyte=DID_OK",
    "sd 10:0:0:0: timing out command, waited 30s",
    "sd 0:0:0:1: timing out command, waited 30s",
    "scsi host2: resetting",
    "scsi host01: resetting",
    "ata13: hard resetting link",
    "ata3.00: failed command: READ FPDMA QUEUED",
    "pcieport 0000:00:02.0: AER: Corrected error received: 0000:02:00.0",
    "megaraid_sas 0000:02:00.0: FW in FAULT state Fault code:0x10000",
    "mpt3sas_cm1: log_info(0x31110e03): originator(PL), device reset",
    "mpt3sas_cm1: sd 2:0:0:0: task abort: FAILED",
    "md/raid1:md12: Disk failure on sdb1, disabling device.",
    "md/raid1:md127: Disk failure on sdb1, disabling device.",
    "XFS (dm-12): log I/O error -5",
    "BTRFS error (device dm-3): bdev /dev/mapper/vg-data2 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
    "device-mapper: multipath: 253:9: Failing path 8:01.",
    "device-mapper: multipath: 253:9: Failing path 18:0.",
    "virtio_blk virtio2: [vda] I/O error",
    "INFO: task fio:1234 blocked for more than 120 seconds.",
    "some-sda-like word failed",
    "an I/O error that names nothing",
)


def test_a_line_that_names_a_device_parent_or_link_is_the_trials() -> None:
    assert [text for text in OURS if NAMES.elsewhere(text)] == []


def test_every_other_line_is_elsewhere() -> None:
    assert [text for text in ELSEWHERE if not NAMES.elsewhere(text)] == []


def test_every_line_is_elsewhere_if_nothing_is_known_of_the_trials_devices() -> None:
    assert [text for text in (*OURS, *ELSEWHERE) if not KernelNames().elsewhere(text)] == []


def test_lines_from_elsewhere_take_no_more_than_their_share() -> None:
    watch = KernelWatch()
    first = watch.take(record(0, "ata1: hard resetting link"))
    watch.about(NAMES)
    texts = ["ata3: hard resetting link"] * (MAX_OTHER_LINES + 9) + ["ata1: hard resetting link"] * MAX_LINES
    lines = [line for number, text in enumerate(texts, 1) if (line := watch.take(record(number, text))) is not None]
    assert first is not None
    assert first.elsewhere  # before anybody said which devices are the trial's
    assert [line.elsewhere for line in lines].count(True) == MAX_OTHER_LINES - 1
    assert len(lines) == MAX_LINES - 1
    assert "are dropped" in lines[MAX_OTHER_LINES - 2].text
    lost = watch.take(record(900, "ata3: hard resetting link"))
    assert lost is None  # there is no room any more


def test_overwritten_records_do_not_accuse_the_trials_drive() -> None:
    watch = KernelWatch(NAMES)
    elsewhere = []
    for sequence, text in ((1, "nothing"), (9, "ata1: nothing of importance"), (12, "ata1: hard resetting link")):
        line = watch.take(f"6,{sequence},1500000,-;{text}")
        elsewhere += [line.elsewhere] if line else []
    assert elsewhere == [True, False]


def drive(sys: Path, name: str, way: str, *partitions: str) -> None:
    at = sys / "devices" / way
    at.mkdir(parents=True)
    (sys / "class/block").mkdir(parents=True, exist_ok=True)
    (sys / "class/block" / name).symlink_to(at)
    for part in partitions:
        (at / part).mkdir()
        (at / part / "partition").write_text("1")
        (sys / "class/block" / part).symlink_to(at / part)


def on(sys: Path, above: str, below: str) -> None:
    for where, folder, what in ((above, "slaves", below), (below, "holders", above)):
        (sys / "class/block" / where / folder).mkdir(exist_ok=True)
        (sys / "class/block" / where / folder / what).touch()


def test_it_knows_what_belongs_to_a_target(tmp_path: Path) -> None:
    """A directory on a volume over a partition and an NVMe namespace that is reached by a subsystem."""
    port = "pci0000:00/0000:00:1f.2/ata{0}/host{1}/target{1}:0:0/{1}:0:0:0/block/{2}"
    drive(tmp_path, "sda", port.format(1, 0, "sda"), "sda1", "sda2")
    drive(tmp_path, "sdb", port.format(2, 1, "sdb"), "sdb1")
    for host, driver, number in ((0, "ahci", "1"), (1, "mpt3sas", "3")):
        (tmp_path / f"class/scsi_host/host{host}").mkdir(parents=True)
        (tmp_path / f"class/scsi_host/host{host}/proc_name").write_text(driver)
        (tmp_path / f"class/scsi_host/host{host}/unique_id").write_text(number)
    drive(tmp_path, "nvme0n1", "virtual/nvme-subsystem/nvme-subsys0/nvme0n1")
    controller = tmp_path / "devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme3"
    controller.mkdir(parents=True)
    (tmp_path / "devices/virtual/nvme-subsystem/nvme-subsys0/nvme3").symlink_to(controller)
    drive(tmp_path, "nvme3n1", "pci0000:00/0000:00:02.0/0000:02:00.0/nvme/nvme0/nvme3n1")
    drive(tmp_path, "dm-0", "virtual/block/dm-0")
    (tmp_path / "devices/virtual/block/dm-0/dm").mkdir()
    (tmp_path / "devices/virtual/block/dm-0/dm/name").write_text("vg-x\n")
    drive(tmp_path, "md5", "virtual/block/md5")
    for above, below in (("dm-0", "sda1"), ("dm-0", "nvme0n1"), ("md5", "sda2")):
        on(tmp_path, above, below)
    names = names_in([OpenTarget(path="/srv/x", device="dm-0")], tmp_path)
    ours = ("dm-0", "/dev/mapper/vg-x", "sda", "sda1", "ata1.00", "sd 0:0:0:0:", "host0", "scsi0", "0000:00:1f.2",
            "nvme0n1", "nvme0c3n1", "nvme3:", "0000:01:00.0")  # fmt: skip
    theirs = ("sda2", "md5", "sdb", "sdb1", "ata2", "sd 1:0:0:0:", "host1", "mpt3sas_cm3", "nvme3n1", "nvme0:",
              "0000:02:00.0")  # fmt: skip
    assert [name for name in ours if names.elsewhere(f"{name} failed")] == []
    assert [name for name in theirs if not names.elsewhere(f"{name} failed")] == []
    whole = names_in([OpenTarget(path="/dev/sdb", device="sdb")], tmp_path)
    assert [n for n in ("sdb", "sdb1", "sdb7", "mpt3sas_cm3", "host1") if whole.elsewhere(f"{n} failed")] == []
    assert [n for n in ("sdba", "mpt3sas_cm1", "sda", "host0") if not whole.elsewhere(f"{n} failed")] == []
    assert names_in([OpenTarget(path="/srv/x")], tmp_path).elsewhere("sdb failed")  # on what it lies is not known


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_a_loop_device_on_the_same_disk_is_not_accused(tmp_path: Path) -> None:
    """The disk under both files is a parent of each."""
    with rig.loop(rig.sparse(tmp_path / "a.img")) as device, rig.loop(rig.sparse(tmp_path / "b.img")) as other:
        name = Path(device).name
        numbers = tmp_path.stat().st_dev
        under = sysfs.name_of(f"{os.major(numbers)}:{os.minor(numbers)}") or name
        for names in (names_in([OpenTarget(path=device, device=name)]), names_at([device, "/nowhere", "relative"])):
            assert not names.elsewhere(f"I/O error, dev {name}, sector 0")
            assert not names.elsewhere(f"I/O error, dev {under}, sector 0")
            assert names.elsewhere(f"I/O error, dev {Path(other).name}, sector 0")


def test_it_keeps_so_many_lines_of_a_trial_and_says_where_it_stops() -> None:
    watch = KernelWatch(NAMES)
    lines = [line for number in range(MAX_LINES + 50) if (line := watch.take(record(number))) is not None]
    assert len(lines) == MAX_LINES
    assert "further lines of this trial" in lines[-1].text


@pytest.mark.parametrize("damaged", ["", "no head at all", "3,x,1,-;text", "3,1;text"])
def test_it_passes_over_what_is_no_record(damaged: str) -> None:
    assert KernelWatch().take(damaged) is None


@pytest.mark.skipif(os.getuid() != 0 or not os.access("/dev/kmsg", os.W_OK), reason="needs root and a kernel log")
def test_it_reads_the_kernels_log_from_its_present_end() -> None:
    mark = uuid.uuid4().hex
    say(f"<3>sd 9:9:9:9: [sdzz] before {mark} I/O error")
    say("the kernel gives its newest record out late: a neutral one follows")
    with KernelWatch() as watch:
        assert watch.readable
        say(f"<3>sd 9:9:9:9: [sdzz] meanwhile {mark} I/O error")
        say(f"<6>sd 9:9:9:9: [sdzz] attached {mark}")
        lines: list[KernelLine] = []

        def arrived() -> bool:
            lines.extend(line for line in watch.lines() if mark in line.text)
            return bool(lines)

        until(arrived)
        assert [line.text for line in lines] == [f"sd 9:9:9:9: [sdzz] meanwhile {mark} I/O error"]
        assert abs(lines[0].at - time.time()) < 5
        assert not [line for line in watch.lines() if mark in line.text]


def say(text: str) -> None:
    Path("/dev/kmsg").write_text(text)


def test_lines_about_what_the_worker_did_itself_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = KernelWatch()
    failed = "md/raid1:md127: Disk failure on sdb, disabling device."
    records = [record(17, failed), record(18, "sd 0:0:0:0: [sdc] I/O error"), record(19, "ata1: hard resetting link")]
    monkeypatch.setattr(watch, "_records", lambda: records)
    texts = [line.text for line in watch.lines(without="md127: Disk failure on ")]
    assert texts == ["sd 0:0:0:0: [sdc] I/O error", "ata1: hard resetting link"]
