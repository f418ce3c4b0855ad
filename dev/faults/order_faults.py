"""Faults of orders: duplicated, delayed, lost, reordered, replaced by garbage.

The functions take orders out of a host's queue before the worker does, and never change their bytes.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable

import redis

from dev.faults import databases
from dev.faults.fault_schedule import ScheduledFault
from dev.faults.host import StorageHost
from dev.faults.installation import BROKER_POLL_S, Installation
from dev.faults.process_faults import kill
from worker.contract.orders import queue_name

GARBAGE = (b"garbage", b"{}", b"\x00\xff", b'{"body": 1, "headers": {}}', b"[" * 1000)
Handler = Callable[[redis.Redis, str, bytes], object]


def _intercept(installation: Installation, fault: ScheduledFault, handle: Handler) -> None:
    """For the fault's duration, take each order out of the host's queue and pass it to `handle`."""
    queue = _queue(installation, installation.host(fault))
    until = time.monotonic() + fault.duration_s + 3
    while queue and time.monotonic() < until and not installation.ended.is_set():
        try:
            with installation.broker() as connection:
                if taken := connection.brpop([queue], timeout=BROKER_POLL_S):
                    handle(connection, queue, taken[1])
                    installation.pause(0.3)
        except redis.exceptions.RedisError:
            installation.pause(0.5)


def _queue(installation: Installation, host: StorageHost) -> str:
    """ "" if the database is down."""
    with contextlib.suppress(Exception), installation.database() as connection:
        row = connection.execute("select id from hosts_host where slug = %s", [host.slug]).fetchone()
        return queue_name(str(row[0])) if row else ""
    return ""


def duplicate_orders(installation: Installation, fault: ScheduledFault) -> None:
    _intercept(installation, fault, lambda connection, queue, order: connection.lpush(queue, order, order))


def delay_orders(installation: Installation, fault: ScheduledFault) -> None:
    def handle(connection: redis.Redis, queue: str, order: bytes) -> None:
        installation.pause(fault.duration_s)
        connection.lpush(queue, order)

    _intercept(installation, fault, handle)


def lose_orders(installation: Installation, fault: ScheduledFault) -> None:
    _intercept(installation, fault, lambda _connection, _queue, _order: None)


_seen: dict[str, list[bytes]] = {}  # by queue


def reorder_orders(installation: Installation, fault: ScheduledFault) -> None:
    """Send the last ten orders of this host again, the newest first, before new ones."""

    def handle(connection: redis.Redis, queue: str, order: bytes) -> None:
        known = _seen.setdefault(queue, [])
        known.append(order)
        connection.lpush(queue, *reversed(known[-10:]))

    _intercept(installation, fault, handle)


def send_garbage(installation: Installation, fault: ScheduledFault) -> None:
    queue = _queue(installation, installation.host(fault))
    with contextlib.suppress(redis.exceptions.RedisError), installation.broker() as connection:
        if queue:
            connection.lpush(queue, GARBAGE[int(fault.choice * len(GARBAGE))])


def damage_orders(installation: Installation, fault: ScheduledFault) -> None:
    """Kill the worker and make the orders in its journal unreadable."""
    host = installation.host(fault)
    is_open = "select 1 from attempts where finished_at is null"
    until = time.monotonic() + 5
    while not databases.rows(host.state_folder / "journal.db", is_open) and time.monotonic() < until:
        installation.pause(0.02)
    with installation.supervisor.paused(host.worker):
        kill(installation, host.worker)
        installation.pause(0.3)
        with sqlite3.connect(host.state_folder / "journal.db", timeout=5) as journal:
            journal.execute("update attempts set order_text = 'damaged ' || order_text where finished_at is null")


FAULTS: dict[str, Callable[[Installation, ScheduledFault], None]] = {
    "orders twice": duplicate_orders,
    "orders late": delay_orders,
    "orders lost": lose_orders,
    "orders out of order": reorder_orders,
    "orders garbage": send_garbage,
    "orders damaged": damage_orders,
}
