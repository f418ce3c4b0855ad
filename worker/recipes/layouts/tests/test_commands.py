import pytest

from worker.recipes.layouts import Drive, Names, build_steps, parse, tear_down_steps

GB = 10**9
KEEP = "--config 'backup { backup=0 archive=0 }'"


def drives(count: int, name: str = "/dev/sd{}") -> tuple[Drive, ...]:
    return tuple(Drive(name.format("bcdefghij"[n] if "sd" in name else n), 100 * GB) for n in range(count))


def commands(text: str, given: tuple[Drive, ...]) -> list[str]:
    steps = build_steps(parse(text), given, key="t1", mount_point="/mnt/t1")
    return [step.line for step in steps]


def test_it_builds_two_legs_from_the_drives_up() -> None:
    assert commands("2 legs of raid5 x3 chunk 64k / lvm stripe 128k / ext4 noatime", drives(6)) == [
        *(f"wipefs --all --force --quiet /dev/sd{letter}" for letter in "bcdefg"),
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


def test_it_gives_btrfs_all_legs() -> None:
    made = commands("4 legs of single / btrfs raid10", drives(4))
    assert made[-2].endswith("--data raid10 --metadata raid10 /dev/sdb /dev/sdc /dev/sdd /dev/sde")
    assert made[-1].endswith("/dev/sdb /mnt/t1")


def test_it_takes_down_from_the_top_and_leaves_blank_drives() -> None:
    layout = parse("2 legs of raid0 x2 chunk 64k share 90% / md chunk 128k / xfs")
    words = [" ".join(s.argv) for s in tear_down_steps(layout, drives(4), key="t1", mount_point="/mnt/t1")]
    assert words[0] == "umount /mnt/t1"
    assert words.index("mdadm --stop /dev/md/sweetspot-t1-s") < words.index("mdadm --stop /dev/md/sweetspot-t1-0")
    wiped = [line.rpartition(" ")[2] for line in words if line.startswith("wipefs")]
    arrays = [f"/dev/md/sweetspot-t1-{leg}" for leg in ("s", 0, 1)]
    assert wiped == [*arrays, *(f"/dev/sd{d}1" for d in "bcde"), *(f"/dev/sd{d}" for d in "bcde")]
    assert words[-4:] == [f"partx --delete /dev/sd{d}" for d in "bcde"]


def test_it_takes_down_lvm_in_the_order_in_which_it_lies() -> None:
    steps = tear_down_steps(parse("2 legs of single / lvm stripe 64k / ext4"), drives(2), key="t1", mount_point="/m")
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
    with pytest.raises(ValueError, match="has 4 drives, 3 are given"):
        build_steps(parse("raid0 x4 chunk 64k"), drives(3), key="t1", mount_point="/m")


def test_it_never_makes_a_command_line_of_a_mount_option() -> None:
    """Options come from an allowlist and reach mount as one argument."""
    step = build_steps(parse("single / ext4 data=writeback noatime"), drives(1), key="t1", mount_point="/m")[-1]
    assert step.argv[4] == "nodev,nosuid,noexec,data=writeback,noatime"
