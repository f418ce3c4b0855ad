"""What a policy lets one run write to a drive, held against the kernel's counter of a folder that looks like sysfs."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from worker.contract.orders import SettingRequest
from worker.contract.tests.examples import STREAM
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream, TargetKind
from worker.drives import wear
from worker.drives.tests.wearing import Host
from worker.drives.wear import Wear, WriteLimit
from worker.guard.refusal import GuardRefused
from worker.kernel.targets import OpenTarget
from worker.policy import Policy, PolicyEntry
from worker.process.control import Control

MIB = 2**20
PLACES = {0: OpenTarget(path="/dev/nvme0n1", device="nvme0n1")}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def policy(limit: int | None) -> Policy:
    entry = PolicyEntry(
        id="nvme0", kind=TargetKind.BLOCK, path="/dev/nvme0n1", stable_id="nvme-eui.1", max_write_bytes=limit
    )
    return Policy(Path("/p"), (entry,))


def stream(amount: int | None = None, *, read_percent: int | None = None) -> Stream:
    pattern = Pattern.RANDWRITE if read_percent is None else Pattern.RANDRW
    work = replace(STREAM.workload, pattern=pattern, amount_bytes=amount, runtime_s=None, read_percent=read_percent)
    return replace(STREAM, workload=work)


def started(host: Host, limit: int | None, **more: Stream) -> WriteLimit:
    wear = host.wear()
    wear.begin(["nvme0n1"])
    found = WriteLimit(wear)
    found.begin(policy(limit), [more.get("stream", stream())], PLACES, ())
    found.check()
    return found


def switch(host: Host, iostats: str) -> None:
    (host.node / "queue").mkdir(exist_ok=True)
    (host.node / "queue/iostats").write_text(f"{iostats}\n")


def test_an_amount_that_is_over_the_limit_is_refused_before_anything_is_written(host: Host) -> None:
    started(host, 4 * MIB, stream=stream(4 * MIB))
    started(host, 4 * MIB, stream=stream(16 * MIB, read_percent=75))
    with pytest.raises(GuardRefused, match=r"writes 4198400 more; the policy allows 4194304 per run to nvme0"):
        started(host, 4 * MIB, stream=stream(4 * MIB + 1))


def test_what_earlier_trials_of_the_run_wrote_counts_and_what_another_run_wrote_does_not(host: Host) -> None:
    started(host, 4 * MIB)
    host.has_written(3 * MIB // 512)
    with pytest.raises(GuardRefused, match="has written 3145728 bytes"):
        started(host, 4 * MIB, stream=stream(2 * MIB))
    other = Wear(host.state, "r2", host.said.append, host.sys)
    other.begin(["nvme0n1"])
    limit = WriteLimit(other)
    limit.begin(policy(4 * MIB), [stream(2 * MIB)], PLACES, ())
    limit.check()


def test_a_restart_of_the_host_does_not_forget_it(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    wear = host.wear()
    wear.begin(["nvme0n1"])
    host.has_written(3 * MIB // 512)
    wear.end()
    host.has_written(MIB // 512)
    monkeypatch.setattr("worker.drives.wear.current_boot_id", lambda: "after the restart")
    assert host.wear().written_bytes(["nvme0n1"]) == {"nvme0n1": 4 * MIB}


def test_a_trial_that_a_time_ends_is_stopped_once_it_has_written_too_much(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wear, "EVERY_S", 0.001)
    limit, control = started(host, 4 * MIB), Control("a")
    with limit.watching(control):
        assert not control.stopped.wait(0.05)
        host.has_written(4 * MIB // 512 + 1)
        assert control.stopped.wait(10)
    assert control.reason
    assert (control.reason.code, "max_write_bytes" in control.reason.message) == ("guard_write_limit", True)


def test_nothing_is_written_if_the_kernel_does_not_count(host: Host) -> None:
    switch(host, "0")
    with pytest.raises(GuardRefused, match=r"does not count writes to nvme0n1: the setting iostats is 0"):
        started(host, 4 * MIB)


@pytest.mark.parametrize("engine", [IoEngine.IO_URING_CMD, IoEngine.SG])
def test_writes_by_commands_are_refused_where_they_are_limited(host: Host, engine: IoEngine) -> None:
    work = FioWorkload(pattern=Pattern.WRITE, ioengine=engine, runtime_s=1)
    WriteLimit(host.wear()).begin(policy(None), [replace(stream(), workload=work)], PLACES, ())
    with pytest.raises(GuardRefused, match="does not count writes by commands"):
        WriteLimit(host.wear()).begin(policy(4 * MIB), [replace(stream(), workload=work)], PLACES, ())


def test_a_trial_may_not_switch_the_counting_off_where_it_is_limited(host: Host) -> None:
    for limit, value in ((4 * MIB, "1"), (None, "0")):
        WriteLimit(host.wear()).begin(
            policy(limit), [stream()], PLACES, (), [SettingRequest(name="iostats", value=value)]
        )
    for value in ("0", "00"):
        request = SettingRequest(name="iostats", value=value)
        with pytest.raises(GuardRefused, match=rf"iostats={value} makes the kernel stop counting.*Leave iostats at 1"):
            WriteLimit(host.wear()).begin(policy(4 * MIB), [stream()], PLACES, (), [request])


def test_a_trial_may_not_switch_the_counting_off_at_another_target_on_the_limited_drive(host: Host) -> None:
    """The second stream uses another policy entry without a limit, on the same drive."""
    first = policy(4 * MIB).targets[0]
    both = Policy(Path("/p"), (first, replace(first, id="nvme0p2", path="/dev/nvme0n1p2", max_write_bytes=None)))
    sibling = replace(stream(), number=1, target=replace(STREAM.target, id="nvme0p2"))
    request = SettingRequest(name="iostats", value="0", stream=1)
    with pytest.raises(GuardRefused, match="iostats=0 makes the kernel stop counting"):
        WriteLimit(host.wear()).begin(both, [stream(), sibling], {0: PLACES[0], 1: PLACES[0]}, (), [request])


@pytest.mark.parametrize(("gone", "words"), [(False, "the setting iostats is 0"), (True, "the drive is gone")])
def test_a_trial_is_stopped_when_the_kernel_no_longer_counts(
    host: Host, monkeypatch: pytest.MonkeyPatch, gone: bool, words: str
) -> None:
    monkeypatch.setattr(wear, "EVERY_S", 0.001)
    switch(host, "1")
    limit, control = started(host, 4 * MIB), Control("a")
    with limit.watching(control):
        assert not control.stopped.wait(0.05)
        if gone:
            host.node.rename(host.node.with_name("unplugged"))  # in one step, as far as the reader can see
        else:
            switch(host, "0")
        assert control.stopped.wait(10)
    assert control.reason
    assert (control.reason.code, words in control.reason.message) == ("guard_write_limit", True)


def test_nothing_is_written_if_the_drive_is_unknown(host: Host) -> None:
    for device in ("", "gone"):
        with pytest.raises(GuardRefused, match="its drive is unknown"):
            WriteLimit(host.wear()).begin(policy(1), [stream()], {0: OpenTarget(path="/x", device=device)}, ())


def test_without_a_limit_no_counter_is_read(host: Host) -> None:
    limit, control = started(host, None, stream=stream(2**40)), Control("a")
    host.has_written(2**40)
    with limit.watching(control):
        assert not control.stopped.is_set()


def test_what_all_streams_write_to_a_drive_that_they_share_counts_together(host: Host) -> None:
    """Two entries of the policy at one drive, one of them without a limit, and a trial that uses both at once."""
    wear = host.wear()
    wear.begin(["nvme0n1"])
    first = policy(4 * MIB).targets[0]
    both = Policy(Path("/p"), (first, replace(first, id="nvme0p2", path="/dev/nvme0n1p2", max_write_bytes=None)))
    second = replace(stream(2 * MIB), number=1, target=replace(STREAM.target, id="nvme0p2"))
    open_targets = {0: PLACES[0], 1: PLACES[0]}
    for amount, refused in ((2 * MIB, nullcontext()), (2 * MIB + 1, pytest.raises(GuardRefused, match="4198400 more"))):
        limit = WriteLimit(wear)
        limit.begin(both, [stream(amount), second], open_targets, ())
        with refused:
            limit.check()
