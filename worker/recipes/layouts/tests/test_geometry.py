import pytest

from worker.recipes.layouts.geometry import Verdict, alignment, capacity_share, whole_width_bytes
from worker.recipes.layouts.text import parse

KIB = 1024


def verdicts(text: str) -> dict[str, str]:
    return {layer.layer: layer.verdict.value for layer in alignment(parse(text))}


@pytest.mark.parametrize(
    ("text", "width_kib"),
    [
        ("raid0 x4 chunk 64k", 256),
        ("raid5 x4 chunk 64k", 192),
        ("raid6 x6 chunk 128k", 512),  # the write-up's 2x6xRAID6 with strips of 128 KiB: 512 KiB
        ("raid6 x6 chunk 8k", 32),  # and with strips of 8 KiB: 32 KiB
        ("raid10 x4 chunk 64k", 128),
        ("2 arrays of raid5 x5 chunk 64k / lvm stripe 256k", 512),
        ("4 drives / lvm stripe 256k", 1024),
    ],
)
def test_it_computes_the_data_stripe_width(text: str, width_kib: int) -> None:
    assert whole_width_bytes(parse(text)) == width_kib * KIB


@pytest.mark.parametrize("text", ["single", "raid1 x2", "single share 80% / xfs"])
def test_it_knows_what_is_not_striped(text: str) -> None:
    assert whole_width_bytes(parse(text)) is None
    assert "misaligned" not in verdicts(text).values()


def test_it_holds_every_layer_against_the_one_below() -> None:
    assert verdicts("2 arrays of raid5 x5 chunk 64k share 80% / lvm stripe 256k / xfs") == {
        "partition": "aligned",
        "md raid5 of 5": "aligned",
        "LVM stripe": "aligned",
        "xfs": "aligned",
    }


def test_it_says_that_three_data_drives_never_fit_a_power_of_two() -> None:
    lvm = next(
        a for a in alignment(parse("2 arrays of raid5 x4 chunk 64k / lvm stripe 256k")) if a.layer == "LVM stripe"
    )
    assert lvm.verdict is Verdict.MISALIGNED
    assert "192 KiB" in lvm.words
    assert "use 2, 4 or 8" in lvm.words
    assert lvm.start_bytes == 1152 * KIB  # a multiple of 192 KiB behind the metadata


def test_it_sees_a_data_start_that_was_asked_for_and_does_not_fit() -> None:
    """The classic: LVM's old 192 KiB of metadata in front of stripes of 128 KiB."""
    lvm = alignment(parse("raid0 x2 chunk 256k / lvm stripe 512k align 192k"))[-1]
    assert lvm.verdict is Verdict.MISALIGNED
    assert "Its start, 1152 KiB" in lvm.words


def test_it_sees_a_file_system_that_was_not_told() -> None:
    assert verdicts("raid0 x4 chunk 64k / xfs untold")["xfs"] == "misaligned"
    assert verdicts("raid0 x4 chunk 64k / jfs")["jfs"] == "misaligned"  # JFS cannot be told
    assert verdicts("raid0 x4 chunk 64k / f2fs")["f2fs"] == "aligned"  # segments of 2 MiB, a multiple of 256 KiB
    assert verdicts("raid5 x4 chunk 64k / f2fs")["f2fs"] == "misaligned"


def test_it_sees_drives_with_large_physical_blocks() -> None:
    (array,) = alignment(parse("raid0 x2 chunk 4k"), physical_block_bytes=16 * KIB)
    assert array.verdict is Verdict.MISALIGNED


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("raid0 x4 chunk 64k", 1.0),
        ("raid1 x2", 0.5),
        ("raid5 x4 chunk 64k", 0.75),
        ("raid6 x6 chunk 64k share 50%", 1 / 3),
        ("raid10 x4 chunk 64k", 0.5),
        ("4 drives / btrfs raid10", 0.5),
        ("4 drives / btrfs raid5", 0.75),
    ],
)
def test_it_knows_how_much_holds_data(text: str, share: float) -> None:
    assert capacity_share(parse(text)) == pytest.approx(share)
