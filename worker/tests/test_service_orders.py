"""What a worker does with orders that are repeated, forged, damaged, expired or meant for others."""

import base64
import bz2
import json
import sqlite3
import time
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from worker.contract.items import (
    Accepted,
    Finished,
    Outcome,
    StreamResult,
    StreamStarted,
)
from worker.contract.orders import ORDER_TASK
from worker.contract.signing import seal
from worker.tests.service import Bench
from worker.tests.service_orders import MIB, kinds, of, trial

pytestmark = pytest.mark.service


def celery_message(bench: Bench, **changes: Any) -> str:
    """A message as kombu puts it into the queue, with the properties and headers that the server's have."""
    body = base64.b64encode(json.dumps([["not an envelope"], {}, {}]).encode()).decode()
    headers = {"lang": "py", "task": ORDER_TASK, "id": str(uuid.uuid4()), "root_id": None, "parent_id": None}
    delivery = {"exchange": "", "routing_key": bench.queue}
    properties = {"delivery_mode": 2, "delivery_tag": str(uuid.uuid4()), "body_encoding": "base64", "priority": 0}
    message = {
        "body": body, "content-encoding": "utf-8", "content-type": "application/json", "headers": headers,
        "properties": {**properties, "delivery_info": delivery},
    }  # fmt: skip
    return json.dumps({**message, **changes})


def body_of(*arguments: object, **named: object) -> str:
    return base64.b64encode(json.dumps([arguments, named, {}]).encode()).decode()


def with_headers(bench: Bench, **headers: object) -> str:
    message = json.loads(celery_message(bench))
    return json.dumps({**message, "headers": {**message["headers"], **headers}})


def peak_memory_bytes(pid: int) -> int:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def test_it_works_on_an_order_once_however_often_it_comes(shared: Bench) -> None:
    order = trial(shared)
    shared.send(order)
    shared.send(order)
    shared.peer.wait_end(order.attempt)
    shared.send(order)
    shared.await_log(f"{order.attempt}.*Ignored a repeated delivery of this order")
    following = shared.send(trial(shared))
    shared.peer.wait_end(following)
    items = shared.peer.items(order.attempt)
    assert [len(of(items, kind)) for kind in (Accepted, StreamStarted, StreamResult, Finished)] == [1, 1, 1, 1]


def test_it_drops_an_order_with_a_wrong_signature(shared: Bench) -> None:
    after = len(shared.log_text())
    order = trial(shared)
    shared.send(order, key=Ed25519PrivateKey.generate().private_bytes_raw())
    shared.await_log("Dropped.*does not trust", after=after)
    assert shared.peer.items(order.attempt) == []


def test_it_drops_an_order_whose_text_was_changed(shared: Bench) -> None:
    after = len(shared.log_text())
    order = trial(shared)
    shared.send_text(seal(order, shared.private_key).replace("randread", "randwrite"))
    shared.await_log("Dropped.*does not match", after=after)
    assert shared.peer.items(order.attempt) == []


def test_it_drops_an_order_for_another_host(shared: Bench) -> None:
    after = len(shared.log_text())
    order = trial(shared)
    shared.send(msgspec.structs.replace(order, host="another"))
    shared.await_log("Dropped.*for host another", after=after)
    assert shared.peer.items(order.attempt) == []


def test_it_answers_an_expired_order_without_running_it(shared: Bench) -> None:
    attempt = shared.send(trial(shared, expires_at=time.time() - 7500))
    end = shared.peer.wait_end(attempt)
    assert (end.outcome, end.code) == (Outcome.FAILED, "order_expired")
    assert kinds(shared.peer.items(attempt)) == ["Accepted", "Finished"]


def test_it_asks_for_the_time_before_it_calls_an_order_expired(shared: Bench) -> None:
    """The server's clock was set back by two hours since it was last heard."""
    shared.peer.clock_ahead_s = -7200.0
    try:
        attempt = shared.send(trial(shared, issued_at=time.time() - 7200, expires_at=time.time() - 7200 + 300))
        assert shared.peer.wait_end(attempt).outcome is Outcome.DONE
        late = shared.send(trial(shared, expires_at=time.time() - 7200 - 5))
        assert shared.peer.wait_end(late).code == "order_expired"
    finally:
        shared.peer.clock_ahead_s = 0.0


def test_an_order_that_comes_after_a_newer_one_is_not_run(shared: Bench) -> None:
    older, newer = trial(shared), trial(shared)
    assert shared.peer.wait_end(shared.send(newer)).outcome is Outcome.DONE
    assert shared.peer.wait_end(shared.send(older)).code == "order_superseded"
    assert kinds(shared.peer.items(older.attempt)) == ["Accepted", "Finished"]


def test_an_order_of_the_future_is_not_run(shared: Bench) -> None:
    early = trial(shared, issued_at=time.time() + 7200, expires_at=time.time() + 7500)
    assert shared.peer.wait_end(shared.send(early)).code == "order_too_early"


def test_it_outlives_garbage_in_its_queue_and_so_does_its_trial(shared: Bench) -> None:
    running = shared.send(trial(shared, runtime_s=2))
    shared.peer.wait(lambda: bool(of(shared.peer.items(running), Accepted)))
    for garbage in ("garbage", "[]", '{"body": 1}', "\x00\xff", '{"properties": {}}'):
        shared.redis.lpush(shared.queue, garbage)
    assert shared.peer.wait_end(running).outcome is Outcome.DONE
    assert shared.peer.wait_end(shared.send(trial(shared))).outcome is Outcome.DONE


def test_it_outlives_messages_that_only_look_like_orders(shared: Bench) -> None:
    """Whoever has this host's broker password can write these. None may end the worker, run, or keep an order away."""
    wrong = (
        celery_message(shared),
        with_headers(shared, task="os.system"),
        with_headers(shared, task="celery.chain"),
        with_headers(shared, eta="2999-01-01T00:00:00", retries=10**9),
        with_headers(shared, timelimit=["x", "y"]),
        celery_message(shared, body=body_of()),
        celery_message(shared, body=body_of("a", "b", c="d")),
        celery_message(shared, body=body_of({"a": "map"})),
        celery_message(shared, body=body_of("[" * 100_000)),
        celery_message(shared, body=body_of("x" * 5_000_000)),
        celery_message(shared, body="!!! not base64"),
        celery_message(shared, **{"content-type": "application/x-python-serialize"}),
        celery_message(shared, **{"content-type": "application/x-yaml"}),
        celery_message(shared, headers={}),
        celery_message(shared, properties={}),
    )
    for message in wrong:
        shared.redis.lpush(shared.queue, message)
    end = shared.peer.wait_end(shared.send(trial(shared)), limit_s=60)
    assert end.outcome is Outcome.DONE


def test_it_unpacks_nothing_from_its_queue(shared: Bench) -> None:
    """Less than a kilobyte that kombu would unpack to 256 MiB, before any signature is checked."""
    assert shared.process is not None
    packed = base64.b64encode(bz2.compress(bytes(256 * MIB))).decode()
    assert len(packed) < 1024
    after, before = len(shared.log_text()), peak_memory_bytes(shared.process.pid)
    plain = json.loads(with_headers(shared, compression="application/x-bz2"))
    shared.redis.lpush(shared.queue, json.dumps({**plain, "body": packed}))
    shared.await_log("A message was dropped, because its headers", after=after)
    assert shared.peer.wait_end(shared.send(trial(shared))).outcome is Outcome.DONE
    assert peak_memory_bytes(shared.process.pid) < before + 128 * MIB


def test_it_drops_what_the_server_signed_but_no_order_says(shared: Bench) -> None:
    after = len(shared.log_text())
    text = msgspec.json.encode({**shared.head(), "purpose": "format_disk", "version": 2})
    shared.send_text(shared.signed(text.decode()))
    shared.await_log("Dropped.*format_disk", after=after)


def test_it_names_a_target_that_the_policy_does_not_list(shared: Bench, tmp_path: Path) -> None:
    order = trial(shared)
    (stream,) = order.streams
    other = msgspec.structs.replace(stream.target, id="other", path=str(tmp_path), stable_id=f"dir:{tmp_path}")
    attempt = shared.send(msgspec.structs.replace(order, streams=(msgspec.structs.replace(stream, target=other),)))
    end = shared.peer.wait_end(attempt)
    assert (end.outcome, end.code) == (Outcome.FAILED, "guard_not_in_policy")
    assert "'other'" in end.message


def test_no_order_starts_before_the_server_was_heard(own: Bench) -> None:
    """The host's own clock may be wrong, so an expired order could start."""
    order = trial(own)
    assert own.stop() == 0
    own.peer.down()
    own.start()
    own.send(order)
    own.await_log(f"{order.attempt}.*Received order")
    time.sleep(2)  # the subject is that no trial starts
    assert "Started trial" not in own.log_text()
    own.peer.up()
    assert own.peer.wait_end(order.attempt, limit_s=30).outcome is Outcome.DONE


def test_an_order_is_verified_again_when_it_starts(own: Bench) -> None:
    """The journal has an order whose key the host does not trust any more."""
    order = trial(own)
    assert own.stop() == 0
    stranger = Ed25519PrivateKey.generate().private_bytes_raw()
    with sqlite3.connect(own.paths.journal) as db:
        insert = "insert into attempts (attempt, order_text, received_at) values (?, ?, 0)"
        db.execute(insert, (order.attempt, seal(order, stranger)))
    own.start()
    end = own.peer.wait_end(order.attempt)
    assert (end.outcome, end.code) == (Outcome.FAILED, "order_unreadable")
    assert "does not trust" in end.message


def test_an_order_with_a_damaged_row_is_never_executed(own: Bench) -> None:
    """Its row could not be found again under the attempt of the order, so the order would never be finished."""
    order = trial(own)
    assert own.stop() == 0
    insert = "insert into attempts (attempt, order_text, received_at) values (cast(x'61ff' as text), ?, 0)"
    with sqlite3.connect(own.paths.journal) as db:
        db.execute(insert, (seal(order, own.private_key),))
    own.start()
    after = own.send(trial(own))
    assert own.peer.wait_end(after).outcome is Outcome.DONE
    assert own.peer.items(order.attempt) == []
    with sqlite3.connect(own.paths.journal) as db:
        ((finished, text),) = db.execute("select finished_at is not null, order_text from attempts where number = 1")
    assert (finished, text) == (1, seal(order, own.private_key))
