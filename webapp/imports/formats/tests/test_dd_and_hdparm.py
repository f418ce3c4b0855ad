import pytest

from webapp.imports.formats import dd, hdparm
from webapp.imports.formats.tests.examples import parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE
MIB = 1024 * 1024


def test_dd_needs_its_command_for_the_direction() -> None:
    write, read = parsed("dd/gnu-old.txt")
    assert (write.name, write.direction, read.name, read.direction) == ("write", WRITE, "read", READ)
    assert write.bytes_per_s == pytest.approx(493e6, rel=1e-3)  # as printed, so MB is 10^6
    assert write.factors == {"pattern": "write", "block_size": 8192, "iodepth": 1, "numjobs": 1}
    assert write.ios == 2 * MIB
    with pytest.raises(ImportRefused, match="Put the dd command above"):
        dd.parse(text("dd/gnu-old.txt").split("\n", 1)[1].split("#")[0])


def test_dd_of_coreutils_9() -> None:
    read, copy = parsed("dd/gnu-9.txt")
    assert (read.factors["direct"], read.factors["block_size"]) == (True, MIB)
    assert (copy.name, copy.factors["end_fsync"]) == ("copy", True)
    assert "block_size" not in copy.factors  # the last record is shorter
    assert copy.bytes_per_s == 62e6  # a comma is a decimal point in other languages


def test_dd_of_busybox_and_bsd() -> None:
    busybox, bsd = parsed("dd/others.txt")
    assert busybox.bytes_per_s == pytest.approx(31457280 / 0.012345)
    assert bsd.bytes_per_s == 125829120


def test_dd_in_other_languages_and_of_macos() -> None:
    found = parsed("dd/languages.txt")
    assert [round(one.ios or 0) for one in found] == [100, 200, 300, 400, 500, 600]
    assert [one.runtime_ms for one in found] == [2000, 500, 1500, 4000, 5000, 6000]
    assert {one.factors["block_size"] for one in found} == {MIB}
    assert [one.direction for one in found] == [WRITE, READ, READ, WRITE, WRITE, READ]


def test_an_old_dd_without_bytes_says_what_is_missing() -> None:
    old = "# dd if=/dev/zero of=x bs=1024k count=10\n10+0 records in\n10+0 records out\n"
    assert dd.sniff(old)
    with pytest.raises(ImportRefused, match="only the numbers of records"):
        dd.parse(old)


def test_dd_without_time_is_refused() -> None:
    with pytest.raises(ImportRefused, match="0 seconds"):
        dd.parse("dd if=/dev/zero of=x\n1+0 records in\n1+0 records out\n512 bytes copied, 0.000 s, Infinity B/s\n")


def test_hdparm() -> None:
    found = parsed("hdparm/9.65.txt")
    assert [(m.name, m.other["device"], m.factors["direct"]) for m in found] == [
        ("cached reads", "/dev/loop0", False),
        ("disk reads", "/dev/loop0", False),
        ("cached reads", "/dev/loop0", True),
        ("disk reads", "/dev/loop0", True),
        ("disk reads", "/dev/sda", False),
    ]
    assert found[1].bytes_per_s == pytest.approx(203.31 * MIB)
    assert found[1].bytes_per_s == pytest.approx(400 * MIB / 1.97, rel=3e-3)  # so MB is MiB
    assert found[4].bytes_per_s == pytest.approx(660.65 * 1024)
    assert found[0].notes
    assert not found[1].notes


def test_a_truncated_line_of_hdparm_is_refused() -> None:
    with pytest.raises(ImportRefused, match="truncated"):
        hdparm.parse(" Timing buffered disk reads: 400 MB in  1.97 sec")


@pytest.mark.parametrize(
    ("command", "name", "of"),
    [
        ("dd if=/dev/zero bs=1M count=2048 of=testfile", "write", "testfile"),
        ("root@host:/mnt# dd if=/dev/zero bs=64k count=32768 | pv > testfile", "write", "testfile"),
        ("dd if=testfile bs=64k | pv > /dev/null", "read", "/dev/null"),
        ("# dd if=/dev/sdb bs=64M | pv | ssh host 'dd of=/dev/null'", "read", "/dev/null"),
        ("dd if=disk1.img bs=1G | pv > disk2.img", "copy", "disk2.img"),
        ("dd if=/dev/zero of=testfile bs=1M 2>/dev/null", "write", "testfile"),
    ],
)
def test_a_line_right_below_the_command_is_a_result_without_records(command: str, name: str, of: str) -> None:
    log = f"{command}\n  2147483648 bytes (2.1 GB) copied, 19.9625 s, 108 MB/s\n"
    assert dd.sniff(log)
    (measured,) = dd.parse(log)
    assert (measured.name, measured.other["of"], measured.bytes, measured.runtime_ms) == (name, of, 2**31, 19_962)
    assert (measured.ios, measured.iops) == (None, None)


def test_a_note_says_how_many_lines_have_no_command() -> None:
    line = "16777216000 bytes (17 GB) copied, 138.352 s, 121 MB/s\n"
    alone, shortened = dd.parse(f"dd if=x of=/dev/null\n{line}"), dd.parse(f"dd if=x of=/dev/null\n{line}ocfs: {line}")
    assert (len(alone), len(shortened)) == (1, 1)
    assert len(shortened[0].notes) == len(alone[0].notes) + 1


def test_a_line_of_progress_without_an_end_is_no_result() -> None:
    log = "dd if=/dev/zero of=x bs=1M status=progress\n1946157056 bytes (1.9 GB, 1.8 GiB) copied, 21 s, 92.4 MB/s\n"
    assert not dd.sniff(log)
    with pytest.raises(ImportRefused, match="no rate"):
        dd.parse(log)


@pytest.mark.parametrize("end", ["\r", "\n"])
def test_dd_progress_is_not_a_result(end: str) -> None:
    """coreutils 9.1 with status=progress; some programs turn its carriage returns into ends of lines."""
    progress = "".join(f"{end}{n * 10**8} bytes (100 MB, 95 MiB) copied, {n} s, 100 MB/s" for n in (1, 2, 3))
    (measured,) = dd.parse(
        f"$ dd if=/dev/zero of=/dev/sdb bs=1M count=300 status=progress oflag=direct\n{progress}\n"
        "300+0 records in\n300+0 records out\n314572800 bytes (315 MB, 300 MiB) copied, 4.5 s, 69.9 MB/s\n"
    )
    assert (measured.bytes, measured.runtime_ms, measured.repeat) == (314_572_800, 4500, 1)
    assert measured.factors["block_size"] == 2**20
