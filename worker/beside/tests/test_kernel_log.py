"""Which of the kernel's lines belong to a trial."""

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from worker.beside import KernelWatch
from worker.beside.kernel_log import MOST_LINES, is_trouble
from worker.contract.items import KernelLine

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
    assert is_trouble(level, text)


@pytest.mark.parametrize(("level", "text"), OTHERS)
def test_it_leaves_out(level: int, text: str) -> None:
    assert not is_trouble(level, text)


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
    assert line.text.startswith("22 records before this one were overwritten unread")


def test_it_keeps_so_many_lines_of_a_trial_and_says_where_it_stops() -> None:
    watch = KernelWatch()
    lines = [line for number in range(MOST_LINES + 50) if (line := watch.take(record(number))) is not None]
    assert len(lines) == MOST_LINES
    assert "last line that is kept" in lines[-1].text


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
