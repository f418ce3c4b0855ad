from worker.layouts.building import contradicted, observed

EXT4 = "rw,nosuid,nodev,noexec,noatime,nodiratime,nobarrier,data=writeback,stripe=16"
XFS = "rw,relatime,inode64,logbufs=8,logbsize=256k,noquota"


def test_it_finds_what_the_kernel_shows() -> None:
    asked = ("noatime", "nodiratime", "barrier=0", "data=writeback", "nodiscard")
    assert observed(asked, EXT4, "ext4") == asked
    assert contradicted(asked, EXT4, "ext4") == ()


def test_it_knows_sizes_however_they_are_written() -> None:
    assert contradicted(("logbsize=262144",), XFS, "xfs") == ()
    assert contradicted(("logbsize=64k",), XFS, "xfs") == ("logbsize=64k",)


def test_it_says_what_was_taken_and_does_not_hold() -> None:
    assert contradicted(("noatime", "discard", "barrier"), "rw,relatime,nobarrier", "ext4") == (
        "noatime",
        "discard",
        "barrier",
    )


def test_a_value_that_is_hidden_at_its_default_is_read_in_both_forms() -> None:
    plain, other = "rw,relatime", "rw,relatime,commit=30"
    assert observed(("commit=5", "data=ordered"), plain, "ext4") == ("commit=5", "data=ordered")
    assert contradicted(("commit=5",), other, "ext4") == ("commit=5",)
    assert observed(("commit=30",), other, "ext4") == ("commit=30",)
    assert contradicted(("commit=30",), plain, "ext4") == ("commit=30",)  # it would be shown if it held
    assert observed(("commit=30",), plain, "btrfs") == ("commit=30",)


def test_it_lets_pass_what_the_kernel_never_shows_at_a_default_of_its_own() -> None:
    assert contradicted(("thread_pool=4",), "rw,relatime", "btrfs") == ()
    assert observed(("thread_pool=4",), "rw,relatime", "btrfs") == ()


def test_it_takes_a_level_that_the_kernel_adds() -> None:
    assert observed(("compress=zstd",), "rw,compress=zstd:3", "btrfs") == ("compress=zstd",)
