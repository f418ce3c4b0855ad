"""Faults of networks, disks and clocks. Each function injects a fault, holds it for its duration and reverts it."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from dev.faults.disks import SmallDisk
from dev.faults.fault_schedule import ScheduledFault
from dev.faults.host import StorageHost
from dev.faults.installation import Installation
from dev.faults.process_faults import fio_pids, kill, terminate
from dev.stack import processes
from dev.stack.loop_device import MIB
from worker.kernel.mounts import remove_path

SHIFTS_S = (10.0, 60.0, 600.0, 7200.0)
START_S = 8.0  # until a worker that was killed runs again and has sent a message

# ---- networks


def disconnect_host(installation: Installation, fault: ScheduledFault) -> None:
    _disconnect(installation, fault, [installation.host(fault)])


def disconnect_all_hosts(installation: Installation, fault: ScheduledFault) -> None:
    _disconnect(installation, fault, installation.hosts)


def _disconnect(installation: Installation, fault: ScheduledFault, hosts: Sequence[StorageHost]) -> None:
    for host in hosts:
        installation.network.disconnect(host.number)
    try:
        installation.pause(fault.duration_s)
    finally:
        for host in hosts:
            installation.network.connect(host.number)


def _proxy(
    mode: str, value: Callable[[ScheduledFault], float] = lambda fault: fault.choice
) -> Callable[[Installation, ScheduledFault], None]:
    """Set the mode of the host's proxy, see dev/faults/proxy.py."""

    def inject(installation: Installation, fault: ScheduledFault) -> None:
        host = installation.host(fault)
        host.set_proxy_mode(mode, value(fault))
        try:
            installation.pause(fault.duration_s)
        finally:
            host.set_proxy_mode("")

    return inject


def spoof_key(installation: Installation, fault: ScheduledFault) -> None:
    """Whoever is between host and server adds a key of their own. The worker registers when it starts."""
    host = installation.host(fault)
    host.set_proxy_mode("spoof_key")
    try:
        terminate(installation, host.worker)
        installation.pause(max(5.0, fault.duration_s))
    finally:
        host.set_proxy_mode("")


def start_unanswered(installation: Installation, fault: ScheduledFault) -> None:
    """The server takes the first messages of a worker, which is killed before an answer reaches it."""
    host = installation.host(fault)
    host.set_proxy_mode("no_answer")
    try:
        kill(installation, host.worker)
        installation.pause(max(START_S, fault.duration_s))
        kill(installation, host.worker)
    finally:
        host.set_proxy_mode("")


# ---- disks


@contextmanager
def _full(disk: SmallDisk | None, leave_bytes: int) -> Iterator[None]:
    assert disk
    disk.fill(leave_bytes=leave_bytes)
    try:
        yield
    finally:
        disk.free()


def fill_spool(installation: Installation, fault: ScheduledFault) -> None:
    """Fill the worker's state directory, up to a small remainder or completely."""
    leave = (0, 0, 8 * 1024, 512 * 1024, 16 * MIB)[int(fault.choice * 5)]
    with _full(installation.host(fault).spool_disk, leave):
        installation.pause(fault.duration_s)


def fill_spool_at_the_end(installation: Installation, fault: ScheduledFault) -> None:
    """Fill the worker's state directory when the trial has only its last report to write."""
    name = installation.host(fault).worker
    until = time.monotonic() + 10
    started = False
    while time.monotonic() < until and not (started and not fio_pids(installation, name)):
        started = started or bool(fio_pids(installation, name))
        installation.pause(0.02)
    with _full(installation.host(fault).spool_disk, 0):
        installation.pause(fault.duration_s)


def fill_spool_at_the_start(installation: Installation, fault: ScheduledFault) -> None:
    """The worker starts while its state directory is full, without the space that it keeps in reserve."""
    host = installation.host(fault)
    (host.state_folder / "journal.reserve").unlink(missing_ok=True)
    with _full(host.spool_disk, 0):
        kill(installation, host.worker)
        installation.pause(fault.duration_s)


def fill_database(installation: Installation, fault: ScheduledFault) -> None:
    with _full(installation.database_disk, 0 if fault.choice < 0.5 else 256 * 1024):
        installation.pause(fault.duration_s)


def fill_target(installation: Installation, fault: ScheduledFault) -> None:
    """Delete the files under test and leave no space for new ones."""
    host = installation.host(fault)
    for entry in host.scratch.iterdir():
        if entry.is_dir() and entry.name != "lost+found":
            with suppress(OSError):  # the worker may use it, or something is mounted in it
                remove_path(entry)
    with _full(host.scratch_disk, int(fault.choice * 8 * MIB)):
        installation.pause(fault.duration_s)


# ---- mounts


def mount_in_target(installation: Installation, fault: ScheduledFault) -> None:
    """Bind a directory of somebody else into the worker's folder of the target, or a file over a file under test."""
    host = installation.host(fault)
    folder = host.scratch / ".sweetspot"
    with suppress(StopIteration, OSError):
        if fault.choice < 0.5:
            point = next(iter(sorted(folder.glob("temporary.*")))) / "mount"
            point.mkdir(exist_ok=True)
        else:
            point = next(path for path in sorted(folder.iterdir()) if path.is_file())
        source = host.precious if point.is_dir() else host.precious / "data"
        processes.run(["mount", "--bind", str(source), str(point)])
        try:
            installation.pause(fault.duration_s)
        finally:
            processes.run(["umount", str(point)])


# ---- clocks


def _shift_s(fault: ScheduledFault) -> float:
    size = SHIFTS_S[int(fault.choice * len(SHIFTS_S))]
    return size if int(fault.choice * 1000) % 2 else -size


def shift_worker_clock(installation: Installation, fault: ScheduledFault) -> None:
    clock = installation.host(fault).clock
    clock.shift(_shift_s(fault))
    installation.pause(fault.duration_s)
    clock.shift(0.0)


def shift_server_clock(installation: Installation, fault: ScheduledFault) -> None:
    """Shift the clocks of web tier, tasks, beat and PostgreSQL together."""
    installation.server_clock.shift(_shift_s(fault))
    installation.pause(fault.duration_s)
    installation.server_clock.shift(0.0)


FAULTS: dict[str, Callable[[Installation, ScheduledFault], None]] = {
    "cut network": disconnect_host,
    "cut all networks": disconnect_all_hosts,
    "full spool disk": fill_spool,
    "full spool disk at the end": fill_spool_at_the_end,
    "full spool disk at the start": fill_spool_at_the_start,
    "full database disk": fill_database,
    "full target disk": fill_target,
    "mount in target": mount_in_target,
    "shift worker clock": shift_worker_clock,
    "shift server clock": shift_server_clock,
    "break connections": _proxy("cut_all"),
    "break answers": _proxy("cut_answer"),
    "break requests": _proxy("cut_request"),
    "spoof key": spoof_key,
    "reports unanswered": _proxy("no_answer"),
    "start unanswered": start_unanswered,
    "reports twice": _proxy("twice"),
    "reports late": _proxy("late", lambda fault: 1 + 8 * fault.choice),
    "reports again later": _proxy("again_later", lambda fault: 1 + 5 * fault.choice),
}
