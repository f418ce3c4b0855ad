import pytest

from worker.recipes.layouts.commands import Drive, Names, build_steps, tear_down_steps
from worker.recipes.layouts.text import parse

GB = 10**9
KEEP = "--config 'backup { backup=0 archive=0 }'"


def drives(count: int, name: str = "/dev/sd{}") -> tuple[Drive, ...]:
    return tuple(Drive(name.format("bcdefghij"[n] if "sd" in name else n), 100 * GB) for n in range(count))


def commands(text: str, given: tuple[Drive, ...]) -> list[str]:
    steps = build_steps(parse(text), given, key="t1", mount_point="/mnt/t1")
    return [step.line for step in steps]


def test_it_builds_two_arrays_from_the_drives_up() -> None:
    assert commands("2 arrays of raid5 x3 chunk 64k / lvm stripe 128k / ext4 noatime", drives(6)) == [
        *(f"wipefs --json --output OFFSET,LENGTH,TYPE /dev/sd{letter}" for letter in "bcdefg"),
        "mdadm --create /dev/md/sweetspot-t1-0 --run --force --metadata=1.2 --homehost=any --level 5 --raid-devices 3"
        " --chunk 64K --assume-clean --bitmap=none --data-offset=1024K /dev/sdb /dev/sdc /dev/sdd",
        "mdadm --create /dev/md/sweetspot-t1-1 --run --force --metadata=1.2 --homehost=any --level 5 --raid-devices 3"
        " --chunk 64K --assume-clean --bitmap=none --data-offset=1024K /dev/sde /dev/sdf /dev/sdg",
        f"pvcreate {KEEP} --yes --force --dataalignment 131072b /dev/md/sweetspot-t1-0 /dev/md/sweetspot-t1-1",
        f"vgcreate {KEEP} --yes --physicalextentsize 4194304b sweetspot-t1"
        " /dev/md/sweetspot-t1-0 /dev/md/sweetspot-t1-1",
        f"lvcreate {KEEP} --wipesignatures n --zero n --yes --stripes 2 --stripesize 131072b --extents 100%FREE"
        " --name data sweetspot-t1",
        "mkfs.ext4 -q -F -L ss-t1 -E stride=32,stripe-width=64,nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        " /dev/sweetspot-t1/data",
        "mount -t ext4 -o nodev,nosuid,noexec,noatime /dev/sweetspot-t1/data /mnt/t1",
    ]


def test_it_tells_xfs_the_geometry_or_not() -> None:
    assert "mkfs.xfs -q -f -K -L ss-t1 -d su=65536,sw=4 /dev/md/sweetspot-t1-0" in commands(
        "raid0 x4 chunk 64k / xfs", drives(4)
    )
    assert "mkfs.xfs -q -f -K -L ss-t1 -d noalign /dev/md/sweetspot-t1-0" in commands(
        "raid0 x4 chunk 64k / xfs untold", drives(4)
    )


def test_it_partitions_a_share_and_names_the_partition_as_the_kernel_does() -> None:
    layout = parse("single share 80% / xfs")
    nvme = (Drive("/dev/nvme0n1", 100 * GB),)
    _, partition, _, mkfs, _ = build_steps(layout, nvme, key="t1", mount_point="/mnt/t1")
    sectors = (100 * GB - 2 * 2**20) * 80 // 100 // 2**20 * 2048
    assert partition.stdin == f"label: gpt\nlabel-id: {Names('t1').table_id}\nstart=2048, size={sectors}\n"
    assert mkfs.argv[-1] == "/dev/nvme0n1p1"
    assert build_steps(layout, drives(1), key="t1", mount_point="/m")[3].argv[-1] == "/dev/sdb1"


def test_it_gives_btrfs_all_arrays() -> None:
    made = commands("4 drives / btrfs raid10", drives(4))
    assert made[-2].endswith("--data raid10 --metadata raid10 /dev/sdb /dev/sdc /dev/sdd /dev/sde")
    assert made[-1].endswith("/dev/sdb /mnt/t1")


def test_it_takes_down_from_the_top_and_leaves_blank_drives() -> None:
    layout = parse("2 arrays of raid0 x2 chunk 64k share 90% / md chunk 128k / xfs")
    words = [" ".join(s.argv) for s in tear_down_steps(layout, drives(4), key="t1", mount_point="/mnt/t1")]
    assert words[0] == "umount /mnt/t1"
    assert words.index("mdadm --stop /dev/md/sweetspot-t1-s") < words.index("mdadm --stop /dev/md/sweetspot-t1-0")
    wiped = [line.rpartition(" ")[2] for line in words if line.startswith("wipefs")]
    arrays = [f"/dev/md/sweetspot-t1-{array}" for array in ("s", 0, 1)]
    assert wiped == [*arrays, *(f"/dev/sd{d}1" for d in "bcde"), *(f"/dev/sd{d}" for d in "bcde")]
    assert words[-4:] == [f"partx --delete /dev/sd{d}" for d in "bcde"]


def test_it_takes_down_lvm_in_the_order_in_which_it_lies() -> None:
    steps = tear_down_steps(parse("2 drives / lvm stripe 64k / ext4"), drives(2), key="t1", mount_point="/m")
    assert [(step.part.value, step.of) for step in steps] == [
        ("mount", "/m"),
        ("signatures", "/dev/sweetspot-t1/data"),
        ("volume group", "sweetspot-t1"),
        ("signatures", "/dev/sdb"),
        ("signatures", "/dev/sdc"),
        ("partitions", "/dev/sdb"),
        ("partitions", "/dev/sdc"),
    ]


def test_it_refuses_another_number_of_drives() -> None:
    with pytest.raises(ValueError, match="has 4 drives, but 3 were given"):
        build_steps(parse("raid0 x4 chunk 64k"), drives(3), key="t1", mount_point="/m")


def test_it_never_makes_a_command_line_of_a_mount_option() -> None:
    """Options come from an allowlist and reach mount as one argument."""
    step = build_steps(parse("single / ext4 data=writeback noatime"), drives(1), key="t1", mount_point="/m")[-1]
    assert step.argv[4] == "nodev,nosuid,noexec,data=writeback,noatime"


BAYS = tuple(Drive(f"/storcli/0/252:{n}", 100 * GB) for n in range(8))
OLD_BAYS = tuple(Drive(f"/MegaCli/1/32:{n}", 100 * GB) for n in range(8))


def test_it_makes_virtual_drives_and_stripes_over_them() -> None:
    line = "2 arrays of vd raid5 x3 strip 64k wb nora direct pdcache=off / lvm stripe 128k / xfs"
    made = commands(line, BAYS[:6])
    assert made[:6] == [
        "storcli /c0 add vd type=raid5 name=ss-t1-0 drives=252:0,252:1,252:2 pdcache=off wb nora direct strip=64"
        " J nolog",
        "storcli /c0/vN set autobgi=off J nolog",
        "storcli /c0 add vd type=raid5 name=ss-t1-1 drives=252:3,252:4,252:5 pdcache=off wb nora direct strip=64"
        " J nolog",
        "storcli /c0/vN set autobgi=off J nolog",
        "wipefs --json --output OFFSET,LENGTH,TYPE /dev/disk/by-id/wwn-OF-ss-t1-0",
        "wipefs --json --output OFFSET,LENGTH,TYPE /dev/disk/by-id/wwn-OF-ss-t1-1",
    ]
    assert "--yes --force --dataalignment 131072b /dev/disk/by-id/wwn-OF-ss-t1-0" in made[6]
    assert not any("mdadm" in each for each in made)


@pytest.mark.parametrize(
    ("line", "given", "first"),
    [
        ("vd raid50 x8 spans 2 strip 256k wt", BAYS, "type=raid50 name=ss-t1-0 drives=252:0,252:1,252:2,252:3,252:4,"
         "252:5,252:6,252:7 PDperArray=4 wt strip=256"),
        ("vd raid10 x4 strip 64k", BAYS[:4], "drives=252:0,252:1,252:2,252:3 PDperArray=2 strip=64"),
        ("vd raid0 x1 strip 1M", BAYS[:1], "type=raid0 name=ss-t1-0 drives=252:0 strip=1024"),
        ("vd raid5 x3 strip 8k awb ra cached", OLD_BAYS[:3],
         "MegaCli -CfgLdAdd '-R5[32:0,32:1,32:2]' WB CachedBadBBU RA Cached -strpsz8 -a1 -NoLog"),
        ("vd raid60 x8 spans 2 strip 64k wb", OLD_BAYS, "MegaCli -CfgSpanAdd -R60 '-Array0[32:0,32:1,32:2,32:3]'"
         " '-Array1[32:4,32:5,32:6,32:7]' WB NoCachedBadBBU -strpsz64 -a1 -NoLog"),
    ],
)  # fmt: skip
def test_it_spells_levels_spans_and_policies_as_the_tool_does(line: str, given: tuple[Drive, ...], first: str) -> None:
    assert first in commands(line, given)[0]


def test_megacli_names_a_drive_and_stops_its_initialisation_once_it_is_made() -> None:
    assert commands("vd raid1 x2 strip 64k pdcache=on", OLD_BAYS[:2])[1:4] == [
        "MegaCli -LDSetProp -Name ss-t1-0 -LN -a1 -NoLog",
        "MegaCli -LDBI -Dsbl -LN -a1 -NoLog",
        "MegaCli -LDSetProp EnDskCache -LN -a1 -NoLog",
    ]


def test_it_deletes_virtual_drives_last_and_wipes_nothing_below_them() -> None:
    layout = parse("vd raid0 x2 strip 64k / xfs")
    steps = tear_down_steps(layout, BAYS[:2], key="t1", mount_point="/m", made=("/dev/sdq",))
    assert [" ".join(step.argv) for step in steps] == [
        "umount /m", "wipefs --json --output OFFSET,LENGTH,TYPE /dev/sdq", "storcli /c0/vN del J nolog",
    ]  # fmt: skip
