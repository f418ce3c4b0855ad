import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.contract.layouts import BtrfsProfile, DrivePolicy, FileSystem, Layout, Maker, Raid, Stripe
from worker.recipes.layouts.problems import problems
from worker.recipes.layouts.text import LayoutError, parse, sweep, write

KIB = 1024


def test_it_reads_two_arrays_striped_and_formatted() -> None:
    layout = parse("2 arrays of raid5 x5 chunk 64k / lvm stripe 256k extent 8M align 512k / xfs noatime logbsize=256k")
    assert layout == Layout(
        arrays=2,
        raid=Raid.RAID5,
        drives_per_array=5,
        chunk_bytes=64 * KIB,
        stripe=Stripe.LVM,
        stripe_bytes=256 * KIB,
        extent_bytes=8 * KIB * KIB,
        data_alignment_bytes=512 * KIB,
        file_system=FileSystem.XFS,
        mount_options=("noatime", "logbsize=256k"),
    )
    assert layout.drives == 10


def test_it_reads_a_share_of_a_drive_and_btrfs_over_several() -> None:
    assert parse("single share 80%") == Layout(share_percent=80)
    over_four = parse("4 drives / btrfs raid10 nodatacow")
    assert (over_four.btrfs_profile, over_four.mount_options) == (BtrfsProfile.RAID10, ("nodatacow",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raid7 x2", "no"),
        ("raid5 x2 chunk 64k", "at least 3 drives"),
        ("raid10 x5 chunk 64k", "even number"),
        ("raid0 x2", "needs a chunk"),
        ("raid5 x4 chunk 96k", "not a power of two"),
        ("single chunk 64k", "has no chunk"),
        ("2 drives", "a layer that combines them"),
        ("2 drives / lvm stripe 192k", "power of two"),
        ("2 drives / lvm stripe 8M", "larger than its extent"),
        ("single / xfs / ext4", "use one stripe"),
        ("single // xfs", "a layer is missing"),
        ("single / zfs", "not a file system"),
        ("single / xfs Dev=x", "mount options"),
        ("single / xfs nobarrier", "is not allowed for"),
        ("4 drives / lvm stripe 64k / btrfs raid10", "remove the lvm stripe"),
        ("65 drives / btrfs raid0", "arrays"),
        ("single share 0%", "share"),
        ("raid0 x4 chunk 5000", "chunk"),
        ("", "is not valid"),
        ("raid50 x6 chunk 64k", "md has no raid50"),
        ("vd raid50 x6 strip 64k", "2 to 8 spans"),
        ("vd raid50 x6 spans 4 strip 64k", "2 to 8 spans of at least 3"),
        ("vd raid10 x6 spans 2 strip 64k", "even number"),
        ("vd raid5 x2 strip 64k", "at least 3 drives"),
        ("vd raid1 x4 strip 64k", "takes 2 drives"),
        ("vd raid0 x2", "needs a strip"),
        ("vd raid0 x2 strip 2M", "to 1 MiB"),
        ("vd raid0 x2 strip 96k", "not a power of two"),
        ("vd raid0 x2 chunk 64k", "use `strip`"),
        ("raid0 x2 strip 64k", "use `chunk`"),
        ("raid0 x2 chunk 64k wb", "only for virtual drives"),
        ("vd raid0 x2 strip 64k wb wt", "exclude each other"),
        ("vd raid0 x2 strip 64k share 80%", "share"),
        ("vd single", "needs a RAID level"),
    ],
)
def test_it_says_what_is_wrong_with(text: str, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        parse(text)


def test_it_reads_sweeps_of_one_line() -> None:
    assert [layout.drives for layout in sweep("raid0 x1..8 chunk 64k")] == [1, 2, 3, 4, 5, 6, 7, 8]
    strips = sweep("raid0 x4 chunk 8k..2M *2 / xfs")
    assert [layout.chunk_bytes for layout in strips] == [8 * KIB * 2**power for power in range(9)]
    both = sweep("2 arrays of raid0|raid10 x4 chunk 64k / lvm stripe 256k / xfs|ext4")
    assert [(layout.raid, layout.file_system) for layout in both] == [
        (Raid.RAID0, FileSystem.XFS),
        (Raid.RAID0, FileSystem.EXT4),
        (Raid.RAID10, FileSystem.XFS),
        (Raid.RAID10, FileSystem.EXT4),
    ]
    spans = sweep("vd raid50|raid60 x8 spans 2 strip 64k..1M *2 wb|wt ra|nora / xfs")
    assert len(spans) == 2 * 5 * 2 * 2
    assert [layout.share_percent for layout in sweep("single share 60..100 +20%")] == [60, 80, 100]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raid0 x4 chunk 8k..2M", "no step"),
        ("raid0 x4 chunk 8k..2M *1", "never ends"),
        ("raid0 x8..1 chunk 8k", "must not be below its start"),
        ("single / xfs|", "an alternative is missing"),
        ("raid0 x1..64 chunk 4k..32M *2", "more than 200 layouts"),
        ("raid5 x2..4 chunk 64k", "at least 3 drives"),
    ],
)
def test_it_says_what_is_wrong_with_the_sweep(text: str, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        sweep(text)


LAYOUTS = st.builds(
    Layout,
    arrays=st.integers(1, 4),
    raid=st.sampled_from(Raid),
    drives_per_array=st.integers(1, 8),
    maker=st.sampled_from(Maker),
    spans=st.integers(1, 3),
    policies=st.sampled_from([(), (DrivePolicy.WRITE_THROUGH,), (DrivePolicy.WRITE_BACK, DrivePolicy.DISK_CACHE_OFF)]),
    share_percent=st.sampled_from([1, 80, 100]),
    chunk_bytes=st.none() | st.sampled_from([4 * KIB, 64 * KIB, 2 * KIB * KIB]),
    stripe=st.sampled_from(Stripe),
    stripe_bytes=st.none() | st.sampled_from([64 * KIB, 256 * KIB]),
    extent_bytes=st.sampled_from([4 * KIB * KIB, 32 * KIB * KIB]),
    data_alignment_bytes=st.none() | st.just(512 * KIB),
    file_system=st.sampled_from(FileSystem),
    btrfs_profile=st.sampled_from(BtrfsProfile),
    told_geometry=st.booleans(),
    mount_options=st.sampled_from([(), ("noatime",), ("noatime", "discard")]),
)


@given(LAYOUTS)
def test_it_writes_what_it_reads(layout: Layout) -> None:
    """Of whatever can be built; what a line cannot say of a layout (LVM's numbers without LVM) is its default."""
    if problems(layout):
        return
    again = parse(write(layout))
    assert write(again) == write(layout)
    assert again.drives == layout.drives
    assert not problems(again)
