"""Which of the kernel's lines belong to a trial."""

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from worker.contract.items import KernelLine
from worker.guard.tests import rig
from worker.inventory import sysfs
from worker.open_target import OpenTarget
from worker.telemetry import KernelWatch
from worker.telemetry.kernel_log import MAX_LINES, MAX_OTHER_LINES, is_storage_problem
from worker.telemetry.kernel_names import KernelNames, kernel_names

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


OWN = ("sda", "sda1", "host0", "0:0:0:0", "ata1", "0000:00:1f.2", "nvme0", "nvme0n1", "0000:01:00.0", "0000:00:01.0",
       "md0", "dm-1")  # fmt: skip
OTHERS_HERE = ("sdb", "sdb1", "host2", "2:0:0:0", "0:2:1:0", "ata3", "nvme1", "nvme1n1", "nvme1n1p2", "0000:02:00.0",
               "0000:00:02.0", "md12", "dm-12", "dm-3", "loop0", "vda", "virtio2")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "elsewhere"),
    [
        ("nvme nvme0: I/O 12 QID 3 timeout, aborting", False),
        ("nvme nvme1: I/O 12 QID 3 timeout, aborting", True),
        ("nvme1n1p2: I/O Cmd(0x2) @ LBA 256, 8 blocks, I/O Error (sct 0x2 / sc 0x81)", True),
        ("nvme nvme10: controller is down; will reset", False),  # came later: nobody knows what it is
        ("nvme2c2n1: I/O error", False),
        ("blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ)", True),
        ("blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ)", False),
        ("Buffer I/O error on dev sdb1, logical block 0, async page read", True),
        ("I/O error, dev /dev/sdb, sector 0", True),
        ("sd 2:0:0:0: [sdb] tag#17 FAILED Result: hostbyte=DID_OK", True),
        ("sd 0:0:0:0: [sda] tag#17 FAILED Result: hostbyte=DID_OK", False),
        ("sd 0:0:0:0: tag#17 timing out command", False),
        ("sd 10:0:0:0: timing out command", False),  # not 0:0:0:0 either
        ("scsi host2: resetting", True),
        ("scsi host0: resetting", False),
        ("ata1.00: failed command: READ FPDMA QUEUED", False),
        ("ata3.00: failed command: READ FPDMA QUEUED", True),
        ("ata13: hard resetting link", False),
        ("pcieport 0000:00:02.0: AER: Corrected error received: 0000:02:00.0", True),
        ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0", False),
        ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:02:00.0", False),  # the way is shared
        ("megaraid_sas 0000:02:00.0: FW in FAULT state Fault code:0x10000", True),
        ("mpt3sas_cm0: log_info(0x31110e03): originator(PL), device reset", False),
        ("mpt3sas_cm0: sd 2:0:0:0: task abort: FAILED", True),
        ("md/raid1:md0: Disk failure on sdb, disabling device.", False),
        ("md/raid1:md12: Disk failure on sdb1, disabling device.", True),
        ("XFS (dm-1): log I/O error -5", False),
        ("XFS (dm-12): log I/O error -5", True),
        ("XFS (dm-123): log I/O error -5", False),
        ("BTRFS error (device dm-3): bdev /dev/mapper/vg-x errs: wr 1, rd 0", True),
        ("virtio_blk virtio2: [vda] I/O error", True),
        ("INFO: task fio:1234 blocked for more than 120 seconds.", False),
        ("some-sdb-like word failed", False),
        ("an I/O error that names nothing", False),
    ],
)
def test_a_line_is_elsewhere_only_if_all_it_names_is_other_devices(text: str, elsewhere: bool) -> None:
    assert KernelNames(OWN, OTHERS_HERE).elsewhere(text) is elsewhere
    assert not KernelNames((), OTHERS_HERE).elsewhere(text)  # where nothing is known of the trial's devices


def test_lines_from_elsewhere_take_no_more_than_their_share() -> None:
    watch = KernelWatch()
    first = watch.take(record(0, "ata3: hard resetting link"))
    watch.about(KernelNames(OWN, OTHERS_HERE))
    texts = ["ata3: hard resetting link"] * (MAX_OTHER_LINES + 9) + ["ata1: hard resetting link"] * MAX_LINES
    lines = [line for number, text in enumerate(texts, 1) if (line := watch.take(record(number, text))) is not None]
    assert first is not None
    assert not first.elsewhere  # before anybody said which devices are the trial's
    assert [line.elsewhere for line in lines].count(True) == MAX_OTHER_LINES
    assert len(lines) == MAX_LINES - 1
    assert "further lines about other devices" in lines[MAX_OTHER_LINES - 1].text
    lost = watch.take(record(900, "ata3: hard resetting link"))
    assert lost is None  # there is no room any more


def test_what_may_be_lost_of_the_trials_own_lines_is_said_to_be_its() -> None:
    watch = KernelWatch()
    watch.about(KernelNames(OWN, OTHERS_HERE))
    watch.take(record(1, "ata3: hard resetting link"))
    line = watch.take(record(9, "ata3: hard resetting link"))
    assert line is not None
    assert (line.elsewhere, line.text[:9]) == (False, "7 records")


def drive(sys: Path, name: str, way: str, *partitions: str) -> None:
    at = sys / "devices" / way
    at.mkdir(parents=True)
    (sys / "class/block").mkdir(parents=True, exist_ok=True)
    (sys / "class/block" / name).symlink_to(at)
    for part in partitions:
        (at / part).mkdir()
        (at / part / "partition").write_text("1")
        (sys / "class/block" / part).symlink_to(at / part)


def test_it_knows_what_belongs_to_a_target(tmp_path: Path) -> None:
    """A directory on a volume over a partition and an NVMe namespace that is reached by a subsystem."""
    port = "pci0000:00/0000:00:1f.2/ata{0}/host{1}/target{1}:0:0/{1}:0:0:0/block/{2}"
    drive(tmp_path, "sda", port.format(1, 0, "sda"), "sda1", "sda2")
    drive(tmp_path, "sdb", port.format(2, 1, "sdb"), "sdb1")
    drive(tmp_path, "nvme0n1", "virtual/nvme-subsystem/nvme-subsys0/nvme0n1")
    controller = tmp_path / "devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme3"
    controller.mkdir(parents=True)
    (tmp_path / "devices/virtual/nvme-subsystem/nvme-subsys0/nvme3").symlink_to(controller)
    drive(tmp_path, "nvme3n1", "pci0000:00/0000:00:02.0/0000:02:00.0/nvme/nvme0/nvme3n1")
    drive(tmp_path, "dm-0", "virtual/block/dm-0")
    drive(tmp_path, "md5", "virtual/block/md5")
    for above, below in (("dm-0", "sda1"), ("dm-0", "nvme0n1"), ("md5", "sda2")):
        for where, folder, what in ((above, "slaves", below), (below, "holders", above)):
            (tmp_path / "class/block" / where / folder).mkdir(exist_ok=True)
            (tmp_path / "class/block" / where / folder / what).touch()
    names = kernel_names([OpenTarget(path="/srv/x", device="dm-0")], tmp_path)
    ours = ("dm-0", "sda", "sda1", "sda2", "md5", "ata1.00", "sd 0:0:0:0:", "host0", "0000:00:1f.2", "nvme0n1")
    mine = (*ours, "nvme3:", "0000:01:00.0")
    theirs = ("sdb", "sdb1", "ata2", "sd 1:0:0:0:", "host1", "nvme3n1", "nvme0:", "0000:02:00.0")
    assert [name for name in mine if names.elsewhere(f"{name} failed")] == []
    assert [name for name in theirs if not names.elsewhere(f"{name} failed")] == []
    alone = kernel_names([OpenTarget(path="/srv/x")], tmp_path)  # on what it lies is not known
    assert not alone.elsewhere("sdb failed")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
def test_a_loop_device_lies_on_its_files_drive(tmp_path: Path) -> None:
    with rig.loop(rig.sparse(tmp_path / "a.img")) as device:
        name = Path(device).name
        names = kernel_names([OpenTarget(path=device, device=name)])
        assert not names.elsewhere(f"I/O error, dev {name}")
        numbers = tmp_path.stat().st_dev
        under = sysfs.name_of(f"{os.major(numbers)}:{os.minor(numbers)}") or name
        assert not names.elsewhere(f"I/O error, dev {under}")


def test_it_keeps_so_many_lines_of_a_trial_and_says_where_it_stops() -> None:
    watch = KernelWatch()
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
        found = within(lambda: [line for line in watch.lines() if mark in line.text])
        assert [line.text for line in found] == [f"sd 9:9:9:9: [sdzz] meanwhile {mark} I/O error"]
        assert abs(found[0].at - time.time()) < 5
        assert not [line for line in watch.lines() if mark in line.text]


def say(text: str) -> None:
    Path("/dev/kmsg").write_text(text)


def within(look: Callable[[], list[KernelLine]]) -> list[KernelLine]:
    until = time.monotonic() + 5
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def test_lines_about_what_the_worker_did_itself_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = KernelWatch()
    failed = "md/raid1:md127: Disk failure on sdb, disabling device."
    records = [record(17, failed), record(18, "sd 0:0:0:0: [sdc] I/O error"), record(19, "ata1: hard resetting link")]
    monkeypatch.setattr(watch, "_records", lambda: records)
    texts = [line.text for line in watch.lines(without="md127: Disk failure on ")]
    assert texts == ["sd 0:0:0:0: [sdc] I/O error", "ata1: hard resetting link"]
