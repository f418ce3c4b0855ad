"""The faults, one function a kind: do it, hold it for a while, take it back.

Nobody is asked first: a fault may hit while another one holds, and what it wants to hit may just be down.
"""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from webapp.local import postgres, processes, redis_server, services
from webapp.local.torture.deal import Fault
from webapp.local.torture.disks import MIB, SmallDisk
from webapp.local.torture.host import LabHost
from webapp.local.torture.watchman import tree
from webapp.local.torture.world import World
from worker.contract.orders import queue_name

Act = Callable[[World, Fault], None]
JUMPS_S = (10.0, 60.0, 600.0, 7200.0)
STEAL_S = 1  # how long one look at the queue waits


def _host(world: World, fault: Fault) -> LabHost:
    return world.hosts[fault.host % len(world.hosts)]


# ---- processes


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _pids(world: World, name: str, *, alone: bool = False) -> list[int]:
    record = processes.known(world.state, name)
    if record is None:
        return []
    return [record.pid] if alone else tree(record.pid)


def _kill(world: World, fault: Fault, name: str, *, alone: bool = False) -> None:
    """SIGKILL; in half of the cases it stays down for a while."""
    with world.watchman.holding(name):
        _signal(_pids(world, name, alone=alone), signal.SIGKILL)
        world.pause(fault.hold_s if fault.dice < 0.5 else 0)


def _freeze(world: World, fault: Fault, pids: list[int]) -> None:
    _signal(pids, signal.SIGSTOP)
    try:
        world.pause(fault.hold_s)
    finally:
        _signal(pids, signal.SIGCONT)


def kill_worker(world: World, fault: Fault) -> None:
    """The worker alone: what it started is on its own."""
    _kill(world, fault, _host(world, fault).worker, alone=True)


def kill_worker_again_and_again(world: World, fault: Fault) -> None:
    """A worker that dies while it recovers."""
    for _ in range(4):
        _signal(_pids(world, _host(world, fault).worker, alone=True), signal.SIGKILL)
        world.pause(0.6 + 2 * fault.dice)


def freeze_worker(world: World, fault: Fault) -> None:
    _freeze(world, fault, _pids(world, _host(world, fault).worker, alone=True))


def stop_worker(world: World, fault: Fault) -> None:
    """SIGTERM, as a service manager does it."""
    name = _host(world, fault).worker
    with world.watchman.holding(name):
        _signal(_pids(world, name, alone=True), signal.SIGTERM)
        world.pause(fault.hold_s)


def fio_of(world: World, host: LabHost) -> list[int]:
    found = []
    for pid in _pids(world, host.worker):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "fio":
                found.append(pid)
    return found


def _await_fio(world: World, fault: Fault) -> list[int]:
    until = time.monotonic() + 5
    while not (found := fio_of(world, _host(world, fault))) and time.monotonic() < until:
        world.pause(0.05)
    return found


def kill_fio(world: World, fault: Fault) -> None:
    _signal(_await_fio(world, fault), signal.SIGKILL)


def freeze_fio(world: World, fault: Fault) -> None:
    _freeze(world, fault, _await_fio(world, fault))


def kill_supervisor(world: World, fault: Fault) -> None:
    """The process between worker and fio."""
    worker = _pids(world, _host(world, fault).worker, alone=True)
    _await_fio(world, fault)
    supervisors = [pid for pid in tree(worker[0])[1:] if b"supervisor.py" in _cmdline(pid)] if worker else []
    _signal(supervisors, signal.SIGKILL)


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _killer(name: str) -> Act:
    return lambda world, fault: _kill(world, fault, name)


def _freezer(name: str) -> Act:
    return lambda world, fault: _freeze(world, fault, _pids(world, name))


def kill_web_child(world: World, fault: Fault) -> None:
    """One of gunicorn's processes, perhaps in the middle of a transaction."""
    children = _pids(world, services.WEB)[1:]
    _signal(children[int(fault.dice * len(children)) :][:1], signal.SIGKILL)


def kill_postgres(world: World, fault: Fault) -> None:
    """The postmaster alone; its children see that and end."""
    _kill(world, fault, postgres.NAME, alone=True)


def kill_postgres_child(world: World, fault: Fault) -> None:
    """One backend: PostgreSQL then throws out everybody and recovers."""
    children = _pids(world, postgres.NAME)[1:]
    _signal(children[int(fault.dice * len(children)) :][:1], signal.SIGKILL)


def restart_postgres(world: World, fault: Fault) -> None:
    """A "fast" shutdown, as an upgrade does it."""
    with world.watchman.holding(postgres.NAME):
        _signal(_pids(world, postgres.NAME, alone=True), signal.SIGINT)
        world.pause(min(fault.hold_s, 5))


def empty_redis(world: World, _: Fault) -> None:
    with contextlib.suppress(redis.exceptions.RedisError), broker(world) as connection:
        connection.flushall()


def broker(world: World) -> redis.Redis:
    return redis.Redis.from_url(redis_server.url(world.state), socket_timeout=STEAL_S + 4)


# ---- networks


def cut_network(world: World, fault: Fault) -> None:
    """The host's cable is out."""
    world.network.unplug(_host(world, fault).number)
    try:
        world.pause(fault.hold_s)
    finally:
        world.network.plug(_host(world, fault).number)


def cut_all_networks(world: World, fault: Fault) -> None:
    for host in world.hosts:
        world.network.unplug(host.number)
    try:
        world.pause(fault.hold_s)
    finally:
        for host in world.hosts:
            world.network.plug(host.number)


def _relay(mode: str, value: Callable[[Fault], float] = lambda fault: fault.dice) -> Act:
    def act(world: World, fault: Fault) -> None:
        host = _host(world, fault)
        host.tell_relay(mode, value(fault))
        try:
            world.pause(fault.hold_s)
        finally:
            host.tell_relay("")

    return act


# ---- disks


@contextmanager
def _full(disk: SmallDisk, leave_bytes: int) -> Iterator[None]:
    disk.fill(leave_bytes=leave_bytes)
    try:
        yield
    finally:
        disk.relieve()


def fill_spool(world: World, fault: Fault) -> None:
    """The worker's state directory: from a little room to none at all."""
    disk = _host(world, fault).spool_disk
    assert disk
    leave = (0, 0, 8 * 1024, 512 * 1024, 16 * MIB)[int(fault.dice * 5)]
    with _full(disk, leave):
        world.pause(fault.hold_s)


def fill_database(world: World, fault: Fault) -> None:
    assert world.database_disk
    with _full(world.database_disk, 0 if fault.dice < 0.5 else 256 * 1024):
        world.pause(fault.hold_s)


def fill_target(world: World, fault: Fault) -> None:
    """The files that are measured are gone and there is no room for new ones."""
    host = _host(world, fault)
    assert host.scratch_disk
    for entry in host.scratch.iterdir():
        if entry.is_dir() and entry.name != "lost+found":
            shutil.rmtree(entry, ignore_errors=True)
    with _full(host.scratch_disk, int(fault.dice * 8 * MIB)):
        world.pause(fault.hold_s)


# ---- clocks


def _jump_s(fault: Fault) -> float:
    size = JUMPS_S[int(fault.dice * len(JUMPS_S))]
    return size if int(fault.dice * 1000) % 2 else -size


def jump_worker_clock(world: World, fault: Fault) -> None:
    clock = _host(world, fault).clock
    clock.jump(_jump_s(fault))
    world.pause(fault.hold_s)
    clock.jump(0.0)


def jump_server_clock(world: World, fault: Fault) -> None:
    """Web tier, tasks, beat and PostgreSQL together."""
    world.server_clock.jump(_jump_s(fault))
    world.pause(fault.hold_s)
    world.server_clock.jump(0.0)


# ---- orders


def _steal(world: World, fault: Fault, treat: Callable[[redis.Redis, str, bytes], object]) -> None:
    """For a while be quicker than the worker: take orders out of its queue, byte for byte, and do that to them."""
    queue = _queue(world, _host(world, fault))
    until = time.monotonic() + fault.hold_s + 3
    while queue and time.monotonic() < until and not world.ended.is_set():
        try:
            with broker(world) as connection:
                taken = connection.brpop([queue], timeout=STEAL_S)
                if taken:
                    treat(connection, queue, taken[1])
                    world.pause(0.3)
        except redis.exceptions.RedisError:
            world.pause(0.5)


def _queue(world: World, host: LabHost) -> str:
    with contextlib.suppress(Exception), world.database() as connection:
        row = connection.execute("select id from hosts_host where slug = %s", [host.slug]).fetchone()
        return queue_name(str(row[0])) if row else ""
    return ""


def orders_twice(world: World, fault: Fault) -> None:
    _steal(world, fault, lambda connection, queue, order: connection.lpush(queue, order, order))


def orders_late(world: World, fault: Fault) -> None:
    def treat(connection: redis.Redis, queue: str, order: bytes) -> None:
        world.pause(fault.hold_s)
        connection.lpush(queue, order)

    _steal(world, fault, treat)


def orders_lost(world: World, fault: Fault) -> None:
    _steal(world, fault, lambda _connection, _queue, _order: None)


_seen: dict[str, list[bytes]] = {}


def orders_out_of_order(world: World, fault: Fault) -> None:
    """Everything that was ever sent to this host comes again, newest first, before what is new."""

    def treat(connection: redis.Redis, queue: str, order: bytes) -> None:
        known = _seen.setdefault(queue, [])
        known.append(order)
        connection.lpush(queue, *reversed(known[-10:]))

    _steal(world, fault, treat)


def orders_garbage(world: World, fault: Fault) -> None:
    """What is no message at all, and messages that are not for it."""
    queue = _queue(world, _host(world, fault))
    junk = (b"garbage", b"{}", b"\x00\xff", b'{"body": 1, "headers": {}}', b"[" * 1000)
    with contextlib.suppress(redis.exceptions.RedisError), broker(world) as connection:
        if queue:
            connection.lpush(queue, junk[int(fault.dice * len(junk))])


KINDS: dict[str, Act] = {
    "kill worker": kill_worker,
    "kill worker 4 times": kill_worker_again_and_again,
    "freeze worker": freeze_worker,
    "terminate worker": stop_worker,
    "kill fio": kill_fio,
    "freeze fio": freeze_fio,
    "kill supervisor": kill_supervisor,
    "kill web tier": _killer(services.WEB),
    "kill web process": kill_web_child,
    "freeze web tier": _freezer(services.WEB),
    "kill tasks": _killer(services.TASKS),
    "freeze tasks": _freezer(services.TASKS),
    "kill beat": _killer(services.BEAT),
    "freeze beat": _freezer(services.BEAT),
    "kill PostgreSQL": kill_postgres,
    "kill backend": kill_postgres_child,
    "freeze PostgreSQL": _freezer(postgres.NAME),
    "restart PostgreSQL": restart_postgres,
    "kill Redis": _killer(redis_server.NAME),
    "freeze Redis": _freezer(redis_server.NAME),
    "empty Redis": empty_redis,
    "cut network": cut_network,
    "cut all networks": cut_all_networks,
    "break connections": _relay("cut_all"),
    "break answers": _relay("cut_answer"),
    "break requests": _relay("cut_request"),
    "reports unanswered": _relay("no_answer"),
    "reports twice": _relay("twice"),
    "reports late": _relay("late", lambda fault: 1 + 8 * fault.dice),
    "reports again later": _relay("again_later", lambda fault: 1 + 5 * fault.dice),
    "full spool disk": fill_spool,
    "full database disk": fill_database,
    "full target disk": fill_target,
    "jump worker clock": jump_worker_clock,
    "jump server clock": jump_server_clock,
    "orders twice": orders_twice,
    "orders late": orders_late,
    "orders lost": orders_lost,
    "orders out of order": orders_out_of_order,
    "orders garbage": orders_garbage,
}
NEED_ROOT = ("cut network", "cut all networks", "full spool disk", "full database disk", "full target disk")
NEED_COMPILER = ("jump worker clock", "jump server clock")
