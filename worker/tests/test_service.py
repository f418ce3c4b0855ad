"""The worker's process as a whole: real Redis, real fio, a peer that keeps what it is told."""

import time
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest

from worker.contract.items import (
    Finished,
    Observed,
    Outcome,
    Phase,
    Sample,
    StreamResult,
    StreamStarted,
)
from worker.contract.orders import CloseRunOrder, InventoryOrder
from worker.contract.workload import TargetKind
from worker.tests.service import Bench, cpu_s, fio_processes
from worker.tests.service_orders import POLICY, kinds, of, target, trial
from worker.tests.waiting import until

pytestmark = pytest.mark.service

# The Redis user of a host as the server makes it (`webapp.hosts.credentials`).
CONFINED = """
    reset on >secret-of-the-test resetchannels -@all +ping +hello +auth +select +client|setname +brpop +llen
    +multi +exec +hdel +zrem
"""


def await_sample(bench: Bench, attempt: str) -> None:
    bench.peer.wait(lambda: bool(of(bench.peer.items(attempt), Sample)))


def test_it_says_hello_with_its_targets(shared: Bench) -> None:
    found = target(shared)
    assert found.kind is TargetKind.DIRECTORY
    hello = shared.peer.hellos[-1]
    fio = hello.capabilities.engines["fio"]
    assert fio.version.startswith("fio-")
    assert "psync" in fio.features


def test_it_runs_a_trial_and_reports_its_items_in_order(shared: Bench) -> None:
    attempt = shared.send(trial(shared, runtime_s=2))
    assert shared.peer.wait_end(attempt).outcome is Outcome.DONE, shared.log_text()
    items = shared.peer.items(attempt)
    order = [name for name in dict.fromkeys(kinds(items)) if name not in ("Phase", "DriveReading", "KernelLog")]
    assert order == ["Accepted", "Observed", "StreamStarted", "Sample", "StreamResult", "Finished"]
    (result,) = of(items, StreamResult)
    samples = of(items, Sample)
    assert [sample.offset_ms for sample in samples] == list(accumulate(sample.length_ms for sample in samples))
    assert result.samples == len(samples) >= 1
    assert result.directions[0].ios > 0
    assert of(items, Observed)[0].facts
    assert "rw=randread" in of(items, StreamStarted)[0].job_text


def test_it_writes_files_once(shared: Bench) -> None:
    shared.peer.wait_end(shared.send(trial(shared)))
    attempt = shared.send(trial(shared))
    assert shared.peer.wait_end(attempt).outcome is Outcome.DONE
    assert "prefill" not in [phase.name for phase in of(shared.peer.items(attempt), Phase)]


def test_it_cancels_when_the_server_says_so(shared: Bench, folder: Path) -> None:
    order = trial(shared, runtime_s=60)
    shared.send(order)
    await_sample(shared, order.attempt)
    began = time.monotonic()
    shared.peer.cancel.add(order.attempt)
    end = shared.peer.wait_end(order.attempt)
    assert end.outcome is Outcome.CANCELLED
    assert time.monotonic() - began < 4
    assert fio_processes(str(folder)) == []


def test_it_stops_an_attempt_that_the_server_gave_up(shared: Bench, folder: Path) -> None:
    order = trial(shared, runtime_s=60)
    shared.send(order)
    await_sample(shared, order.attempt)
    shared.peer.refuse[order.attempt] = "superseded"
    shared.await_log(f"{order.attempt}.*Ended: failed superseded")
    assert fio_processes(str(folder)) == []
    assert shared.peer.wait_end(shared.send(trial(shared))).outcome is Outcome.DONE


def test_it_repeats_the_inventory_on_request_and_closes_a_run_without_changes(shared: Bench) -> None:
    seen = len(shared.peer.hellos)
    assert shared.peer.wait_end(shared.send(InventoryOrder(**shared.head()))).outcome is Outcome.DONE
    assert len(shared.peer.hellos) > seen
    closed = shared.send(CloseRunOrder(**shared.head(), run="r"))
    assert shared.peer.wait_end(closed).outcome is Outcome.DONE


def test_it_reports_a_changed_policy(shared: Bench, tmp_path: Path) -> None:
    seen = len(shared.peer.hellos)
    before = shared.paths.policy.read_text()
    shared.paths.policy.write_text(before + POLICY.format(path=tmp_path).replace("scratch", "second"))
    shared.peer.wait(lambda: len(shared.peer.hellos) > seen and len(shared.peer.hellos[-1].targets) == 2)
    shared.paths.policy.write_text(before)
    shared.peer.wait(lambda: len(shared.peer.hellos[-1].targets) == 1)


def test_it_loses_and_doubles_no_sample_while_the_server_is_away(shared: Bench) -> None:
    order = trial(shared, runtime_s=6)
    shared.send(order)
    await_sample(shared, order.attempt)
    shared.peer.down()
    time.sleep(2.5)  # the outage
    shared.peer.up()
    assert shared.peer.wait_end(order.attempt).outcome is Outcome.DONE
    items = shared.peer.items(order.attempt)
    samples = of(items, Sample)
    assert [sample.offset_ms for sample in samples] == list(accumulate(sample.length_ms for sample in samples))
    assert of(items, StreamResult)[0].samples == len(samples) >= 5


def test_it_uses_little_of_the_machine_while_a_trial_streams(shared: Bench) -> None:
    order = trial(shared, runtime_s=4)
    shared.send(order)
    await_sample(shared, order.attempt)
    assert shared.process is not None
    before, began = cpu_s(shared.process.pid), time.monotonic()
    shared.peer.wait_end(order.attempt)
    share = (cpu_s(shared.process.pid) - before) / (time.monotonic() - began)
    print(f"worker process: {100 * share:.1f} % of a core")
    assert share < 0.1  # figures are for `make bench`; this is for a loop gone wild


def test_it_reports_a_trial_during_which_it_was_killed_once(own: Bench, folder: Path) -> None:
    order = trial(own, runtime_s=60)
    own.send(order)
    await_sample(own, order.attempt)
    assert fio_processes(str(folder))
    own.kill()
    until(lambda: not fio_processes(str(folder)), 5, lambda: "fio outlived its worker")
    own.start()
    end = own.peer.wait_end(order.attempt)
    assert (end.outcome, end.code) == (Outcome.FAILED, "worker_died")
    own.stop()
    own.start()
    own.peer.wait_end(own.send(trial(own)))
    assert len(of(own.peer.items(order.attempt), Finished)) == 1


def test_a_stopped_worker_ends_its_trial_with_a_reason(own: Bench, folder: Path) -> None:
    order = trial(own, runtime_s=60)
    own.send(order)
    await_sample(own, order.attempt)
    began = time.monotonic()
    assert own.stop() == 0, own.log_text()
    assert time.monotonic() - began < 6
    assert own.peer.wait_end(order.attempt).code == "worker_stopped"
    assert fio_processes(str(folder)) == []


def test_it_works_as_a_redis_user_confined_to_its_own_queue(tmp_path: Path, folder: Path) -> None:
    bench = Bench(tmp_path, POLICY.format(path=folder), broker_url="redis://127.0.0.1:1/0")
    queue, user = bench.queue, f"user-{bench.host}"
    url = bench.redis.connection_pool.connection_kwargs
    rules = (*CONFINED.split(), f"~{queue}", f"~{queue}:*")
    bench.redis.execute_command("ACL", "SETUSER", user, *rules)  # type: ignore[no-untyped-call]
    broker = f"redis://{user}:secret-of-the-test@{url['host']}:{url['port']}/{url['db']}"
    try:
        from worker.link.enrolment import load_enrolment, save_enrolment

        save_enrolment(bench.paths, msgspec.structs.replace(load_enrolment(bench.paths), broker_url=broker))
        bench.start()
        assert bench.peer.wait_end(bench.send(trial(bench))).outcome is Outcome.DONE
        assert bench.stop() == 0
        assert "secret-of-the-test" not in bench.log_text()
        assert "NOPERM" not in bench.log_text()
    finally:
        bench.close()
        bench.redis.execute_command("ACL", "DELUSER", user)  # type: ignore[no-untyped-call]
