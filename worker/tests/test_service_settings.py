"""Settings through the worker's process, on a loop device made for it: put back whatever happens."""

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker import inventory
from worker.cli import main
from worker.contract.items import Outcome, Sample, SettingRecord, SettingRestored
from worker.contract.orders import CloseRunOrder, InventoryOrder, SettingRequest, TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, TargetRef
from worker.guard.tests import rig
from worker.recipes.fio import workload_of
from worker.tests.service import Bench
from worker.tests.service_orders import of
from worker.tests.waiting import until

pytestmark = [
    pytest.mark.service,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and block settings need root"),
]

POLICY = """\
[[target]]
id = "loop"
kind = "block"
path = "{path}"
stable_id = "{stable_id}"
settings = ["read_ahead_kb"]
"""


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    image = tmp_path / "image"
    image.write_bytes(b"\xa5" * (16 << 20))
    with rig.loop(image) as path:
        yield Path(path)


@pytest.fixture
def bench(tmp_path: Path, device: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, policy_for(device))
    bench.start()
    yield bench
    bench.close()


def policy_for(device: Path) -> str:
    (found,) = (each for each in inventory.take().block_devices if each.name == device.name)
    return POLICY.format(path=device, stable_id=found.stable_id)


def read_ahead(device: Path) -> str:
    return Path(f"/sys/block/{device.name}/queue/read_ahead_kb").read_text().strip()


def trial(bench: Bench, value: str, *, runtime_s: int) -> TrialOrder:
    bench.peer.wait(lambda: bool(bench.peer.hellos))
    (found,) = bench.peer.hellos[-1].targets
    assert found.present, found.problem
    target = TargetRef(id=found.id, kind=found.kind, path=found.path, stable_id=found.stable_id, serial=found.serial)
    workload = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, runtime_s=runtime_s)
    return bench.trial(target, workload, SettingRequest(name="read_ahead_kb", value=value))


def restored(bench: Bench, attempt: str) -> list[tuple[str, str, bool]]:
    items = of(bench.peer.items(attempt), SettingRestored)
    return [(item.name, item.observed, item.restored) for item in items]


def test_it_settles_settings_keeps_them_for_the_run_and_puts_them_back_at_its_end(bench: Bench, device: Path) -> None:
    before = read_ahead(device)
    order = trial(bench, "64", runtime_s=1)
    assert bench.peer.wait_end(bench.send(order)).outcome is Outcome.DONE, bench.log_text()
    (record,) = of(bench.peer.items(order.attempt), SettingRecord)
    assert (record.before, record.asked, record.observed) == (before, "64", "64")
    assert read_ahead(device) == "64"
    closing = CloseRunOrder(**bench.head(), run=order.run)
    assert bench.peer.wait_end(bench.send(closing)).outcome is Outcome.DONE
    assert restored(bench, closing.attempt) == [("read_ahead_kb", before, True)]
    assert read_ahead(device) == before


def test_it_puts_settings_back_at_the_start_after_it_was_killed(bench: Bench, device: Path) -> None:
    before = read_ahead(device)
    order = trial(bench, "64", runtime_s=60)
    bench.send(order)
    bench.peer.wait(lambda: bool(of(bench.peer.items(order.attempt), Sample)))
    bench.kill()
    assert read_ahead(device) == "64"
    bench.start()
    assert bench.peer.wait_end(order.attempt).code == "worker_died"
    assert restored(bench, order.attempt) == [("read_ahead_kb", before, True)]
    assert read_ahead(device) == before


def test_it_starts_with_an_order_that_cannot_be_read(
    bench: Bench, device: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One under way by another version of the worker, and one of which nothing can be read."""
    before = read_ahead(device)
    order = trial(bench, "64", runtime_s=60)
    bench.send(order)
    bench.peer.wait(lambda: bool(of(bench.peer.items(order.attempt), Sample)))
    bench.kill()
    with sqlite3.connect(bench.paths.journal) as db:
        db.execute("update attempts set order_text = ?", (bench.signed('{"version":2,"purpose":"dance"}'),))
        damaged = "insert into attempts (attempt, order_text, received_at) values (cast(x'61ff' as text), x'ff', 0)"
        db.execute(damaged)
    bench.start()
    end = bench.peer.wait_end(order.attempt)
    assert (end.outcome, end.code) == (Outcome.FAILED, "order_unreadable")
    assert "dance" in end.message
    assert restored(bench, order.attempt) == [("read_ahead_kb", before, True)]
    assert read_ahead(device) == before
    assert bench.peer.wait_end(bench.send(trial(bench, "64", runtime_s=1))).outcome is Outcome.DONE
    assert bench.stop() == 0
    main(["--state", str(bench.paths.state), "--policy", str(bench.paths.policy), "doctor"])
    told = capsys.readouterr().out
    assert f"the order of attempt {order.attempt} could not be read" in told
    assert "the order of attempt a\ufffd could not be read" in told


def test_it_puts_settings_back_when_it_is_stopped(bench: Bench, device: Path) -> None:
    before = read_ahead(device)
    order = trial(bench, "64", runtime_s=60)
    bench.send(order)
    bench.peer.wait(lambda: bool(of(bench.peer.items(order.attempt), Sample)))
    assert bench.stop() == 0
    assert read_ahead(device) == before
    assert bench.peer.wait_end(order.attempt).code == "worker_stopped"
    assert restored(bench, order.attempt) == [("read_ahead_kb", before, True)]


def test_it_says_that_a_setting_of_an_absent_device_is_not_put_back(bench: Bench, device: Path, tmp_path: Path) -> None:
    """Not at the first end of the run, not at the second, and put back at the end of the next run."""
    before = read_ahead(device)
    order = trial(bench, "64", runtime_s=1)
    assert bench.peer.wait_end(bench.send(order)).outcome is Outcome.DONE, bench.log_text()
    rig.detach(str(device))
    for _ in range(2):
        end = bench.peer.wait_end(bench.send(CloseRunOrder(**bench.head(), run=order.run)))
        assert (end.outcome, end.code) == (Outcome.FAILED, "settings_not_restored")
        assert f"read_ahead_kb of {device.name}: the device is absent" in end.message
    subprocess.run(["losetup", device, tmp_path / "image"], check=True)
    Path(f"/sys/block/{device.name}/queue/read_ahead_kb").write_text("64")
    closing = CloseRunOrder(**bench.head(), run="another")
    assert bench.peer.wait_end(bench.send(closing)).outcome is Outcome.DONE
    assert read_ahead(device) == before


def test_a_loop_device_of_another_program_is_no_part_of_the_inventory(
    bench: Bench, device: Path, tmp_path: Path
) -> None:
    with rig.loop(rig.sparse(tmp_path / "foreign")) as foreign:
        assert bench.peer.wait_end(bench.send(InventoryOrder(**bench.head()))).outcome is Outcome.DONE
        names = {each.name for each in bench.peer.hellos[-1].inventory.block_devices}
    assert device.name in names
    assert Path(foreign).name not in names


def test_it_fails_a_setting_that_the_policy_does_not_allow(bench: Bench) -> None:
    order = trial(bench, "64", runtime_s=1)
    request = SettingRequest(name="nr_requests", value="32")
    attempt = bench.send(bench.trial(order.streams[0].target, workload_of(order.streams[0]), request))
    assert bench.peer.wait_end(attempt).code == "setting_not_allowed"


def test_it_puts_settings_back_when_the_server_forgets_the_run(tmp_path: Path, device: Path) -> None:
    bench = Bench(tmp_path, policy_for(device))
    bench.peer.lease_s = 1.0
    try:
        bench.start(SWEETSPOT_WORKER_IDLE_RESTORE_S="2")
        before = read_ahead(device)
        assert bench.peer.wait_end(bench.send(trial(bench, "64", runtime_s=1))).outcome is Outcome.DONE
        assert read_ahead(device) == "64"
        began = time.monotonic()
        until(lambda: read_ahead(device) == before, 15, bench.log_text)
        assert time.monotonic() - began > 1.5
    finally:
        bench.close()
