from worker.layouts.mount_options import contradicted, observed

EXT4 = "rw,nosuid,nodev,noexec,noatime,nodiratime,nobarrier,data=writeback,stripe=16"
XFS = "rw,relatime,inode64,logbufs=8,logbsize=256k,noquota"


def test_it_finds_what_the_kernel_shows() -> None:
    asked = ("noatime", "nodiratime", "barrier=0", "data=writeback", "nodiscard")
    assert observed(asked, EXT4) == asked
    assert contradicted(asked, EXT4) == ()


def test_it_knows_sizes_however_they_are_written() -> None:
    assert contradicted(("logbsize=262144",), XFS) == ()
    assert contradicted(("logbsize=64k",), XFS) == ("logbsize=64k",)


def test_it_says_what_was_taken_and_does_not_hold() -> None:
    assert contradicted(("noatime", "discard", "barrier"), "rw,relatime,nobarrier") == ("noatime", "discard", "barrier")


def test_it_lets_pass_what_the_kernel_does_not_show_at_its_default() -> None:
    assert contradicted(("commit=5", "thread_pool=4"), "rw,relatime") == ()
    assert observed(("commit=5",), "rw,relatime") == ()


def test_it_takes_a_level_that_the_kernel_adds() -> None:
    assert observed(("compress=zstd",), "rw,compress=zstd:3") == ("compress=zstd",)
