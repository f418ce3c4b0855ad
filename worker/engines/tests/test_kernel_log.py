"""Which of the kernel's lines belong to a leg."""

from worker.engines.kernel_log import KernelLog


def test_it_keeps_warnings_and_lines_that_name_the_device() -> None:
    log = KernelLog("sdb")
    assert log.wanted("4,1,2,-;something is odd\n SUBSYSTEM=x\n") == "something is odd"
    assert log.wanted("6,1,2,-;sd 0:0:0:0: [sdb] Attached\n") == "sd 0:0:0:0: [sdb] Attached"
    assert log.wanted("6,1,2,-;sdb2 is another\n") is None
    assert log.wanted("30,1,2,-;systemd says hello\n") is None  # facility 3, level 6


def test_it_is_empty_where_nothing_was_said() -> None:
    with KernelLog("no-such-device") as log:
        log.lines()
        assert log.lines() == ()
