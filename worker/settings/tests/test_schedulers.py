"""Schedulers with their tunables, and read-ahead with its two faces, on real loop devices."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.guard.tests import rig
from worker.settings import REGISTRY, session
from worker.settings.base import SettingFailed
from worker.settings.devices import SCHEDULER_TUNABLES
from worker.settings.tests.session_host import Host

pytestmark = rig.needs_root
# Values that the kernel keeps exactly, whatever its tick is.
OTHER = {"fifo_batch": "8", "writes_starved": "4", "front_merges": "0", "low_latency": "0", "strict_guarantees": "1"}
OTHER |= {"async_depth": "64", "back_seek_penalty": "3", "max_budget": "4096", "slice_idle_us": "4000"}
OTHER |= {"back_seek_max": "8192", "read_lat_nsec": "1000000", "write_lat_nsec": "5000000"}
IN_TICKS = "1000"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    file = rig.sparse(tmp_path / "disk.img")
    with rig.loop(file) as device:
        found = Host(tmp_path, device, file)
        found.write("scheduler", "none")
        yield found
        session.restore_all(found.journal)


@pytest.mark.parametrize("setting", SCHEDULER_TUNABLES, ids=lambda s: s.name)
def test_it_sets_a_tunable_of_the_scheduler_that_is_chosen_with_it(host: Host, setting: object) -> None:
    tunable = REGISTRY[setting.name]  # type: ignore[attr-defined]
    scheduler, _, name = tunable.name.partition(".")
    if scheduler not in REGISTRY["scheduler"].choices(host.device):
        pytest.skip(f"this kernel has no {scheduler}")
    before = host.state()
    value = OTHER.get(name, IN_TICKS)
    host.apply_settings({tunable.name: value, "scheduler": scheduler})
    assert host.state()[tunable.name] == value
    host.apply_settings({"scheduler": scheduler})
    assert host.state()[tunable.name] != value
    host.apply_settings({tunable.name: value, "scheduler": scheduler})
    told = session.restore_run("run", host.journal)
    assert all(item.restored for item in told)
    assert host.state() == before


def test_it_puts_back_a_schedulers_own_tunables_with_it(host: Host) -> None:
    host.write("scheduler", "mq-deadline")
    host.write("iosched/read_expire", "100")
    host.write("iosched/fifo_batch", "4")
    before = host.state()
    host.apply_settings({"scheduler": "kyber", "kyber.read_lat_nsec": "1000000"})
    host.apply_settings({"mq-deadline.fifo_batch": "7"})
    assert (host.state()["mq-deadline.fifo_batch"], host.state()["mq-deadline.read_expire"]) == ("7", "100")
    host.apply_settings({"scheduler": "none"})
    told = session.restore_run("run", host.journal)
    assert [(item.name, item.value, item.observed, item.restored) for item in told if item.name == "scheduler"] == [
        ("scheduler", "mq-deadline", "mq-deadline", True)
    ]
    assert host.state() == before


@pytest.mark.parametrize("asked", [{}, {"mq-deadline.async_depth": "24"}])
def test_it_puts_back_what_the_kernel_reckons_from_the_size_of_the_queue(host: Host, asked: dict[str, str]) -> None:
    """Linux 6.1 makes mq-deadline's async_depth what nr_requests was before."""
    host.write("scheduler", "mq-deadline")
    before = host.state()
    host.apply_settings({"nr_requests": "32", **asked})
    assert all(host.state()[name] == value for name, value in asked.items())
    told = session.restore_run("run", host.journal)
    assert [item.name for item in told if not item.restored] == []
    assert host.state() == before


@pytest.mark.parametrize("asked", [{}, {"bfq.slice_idle_us": "4000"}])
def test_it_puts_back_the_idling_that_bfqs_strict_guarantees_change(host: Host, asked: dict[str, str]) -> None:
    if "bfq" not in REGISTRY["scheduler"].choices(host.device):
        pytest.skip("this kernel has no bfq")
    host.write("scheduler", "bfq")
    host.write("iosched/slice_idle_us", "2000")
    before = host.state()
    host.apply_settings({"bfq.strict_guarantees": "1", **asked})
    assert host.state()["bfq.slice_idle_us"] == asked.get("bfq.slice_idle_us", "8000")
    told = session.restore_run("run", host.journal)
    assert [item.name for item in told if not item.restored] == []
    assert host.state() == before


def test_it_says_which_scheduler_a_tunable_needs(host: Host) -> None:
    with pytest.raises(SettingFailed, match=r"only with scheduler bfq; loop\d+ has none: also set scheduler") as caught:
        host.apply_settings({"bfq.low_latency": "0"})
    assert caught.value.code == "setting_refused"


def test_it_notices_a_tunable_that_the_kernel_keeps_otherwise(host: Host) -> None:
    with pytest.raises(SettingFailed) as caught:
        host.apply_settings({"scheduler": "mq-deadline", "mq-deadline.front_merges": "5"})
    assert caught.value.code == "setting_clamped"


def test_it_counts_read_ahead_in_sectors(host: Host) -> None:
    before = host.state()
    (record,) = host.apply_settings({"read_ahead_sectors": "8192"})
    assert (record.name, record.asked, record.observed) == ("read_ahead_sectors", "8192", "8192")
    assert rig.run("blockdev", "--getra", host.path) == "8192"
    assert host.state()["read_ahead_kb"] == "4096"
    host.apply_settings({"read_ahead_kb": "64", "max_sectors_kb": "512"})
    host.apply_settings({"read_ahead_sectors": "2048", "max_sectors_kb": "256"})
    assert rig.run("blockdev", "--getra", host.path) == "2048"
    assert all(item.restored for item in session.restore_run("run", host.journal))
    assert host.state() == before


def test_it_refuses_both_ways_of_counting_at_once(host: Host) -> None:
    with pytest.raises(SettingFailed, match="Choose one of them") as caught:
        host.apply_settings({"read_ahead_sectors": "8192", "read_ahead_kb": "64"})
    assert caught.value.code == "setting_conflict"
