"""Faults of drives and their controller: another program uses the drive under test; it is quarantined; it is left with
a password; the controller's tool hangs.
"""

import contextlib
import hashlib
import json
import mmap
import os
import sqlite3
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dev.console import ToolError
from dev.faults import disks
from dev.faults.fault_schedule import ScheduledFault
from dev.faults.host import SETTINGS, StorageHost
from dev.faults.installation import Installation
from dev.faults.process_faults import kill, terminate
from dev.stack import loop_device, processes
from dev.stack.network import await_condition

DETACHED_WITHIN_S = 90.0  # it may be mounted
ATTACHED_WITHIN_S = 90.0  # it may be open
HANGS_WITHIN_S = 30.0
PASSWORD = "left behind"  # noqa: S105 - of a drive without security


def _opener(flags: int) -> Callable[[Installation, ScheduledFault], None]:
    def open_drive(installation: Installation, fault: ScheduledFault) -> None:
        try:
            fd = os.open(installation.host(fault).device, os.O_RDWR | flags)
        except OSError:  # the worker holds it exclusively
            return
        try:
            installation.pause(fault.duration_s)
        finally:
            os.close(fd)

    return open_drive


def mount_drive(installation: Installation, fault: ScheduledFault) -> None:
    host = installation.host(fault)
    host.mount_point.mkdir(exist_ok=True)
    try:
        processes.run(["mount", "-o", "ro", host.device, str(host.mount_point)])
    except ToolError:  # the worker holds it exclusively
        return
    try:
        installation.pause(fault.duration_s)
    finally:
        processes.run(["umount", str(host.mount_point)])


def add_second_path(installation: Installation, fault: ScheduledFault) -> None:
    """Another device over the same image, as a drive with two paths has two kernel names."""
    with _further_loop(installation.host(fault).image):
        installation.pause(fault.duration_s)


@contextmanager
def _further_loop(path: Path, *options: str) -> Iterator[None]:
    device = processes.run(["losetup", "--find", "--show", *options, str(path)]).strip()
    try:
        yield
    finally:
        processes.run(["losetup", "--detach", device])


def add_hidden_loop(installation: Installation, fault: ScheduledFault) -> None:
    """A loop device on the drive, or on its image, whose path is gone. The worker may hold the drive meanwhile."""
    host = installation.host(fault)
    path = host.image.with_name(f"hidden.{uuid.uuid4()}")
    if fault.choice < 0.5:
        os.mknod(path, stat.S_IFBLK | 0o600, Path(host.device).stat().st_rdev)
    else:
        path.hardlink_to(host.image)
    with _further_loop(path, "--read-only"):
        path.unlink()
        installation.pause(fault.duration_s)


def keep_busy(installation: Installation, fault: ScheduledFault) -> None:
    """The drive was unmounted, but a program still has its root directory open: no mount table shows it."""
    host = installation.host(fault)
    host.mount_point.mkdir(exist_ok=True)
    try:
        processes.run(["mount", "-o", "ro", host.device, str(host.mount_point)])
    except ToolError:  # the worker holds it exclusively, or has overwritten the file system
        return
    with subprocess.Popen(["sleep", "600"], cwd=host.mount_point) as program:
        processes.run(["umount", "--lazy", str(host.mount_point)])
        try:
            installation.pause(fault.duration_s)
        finally:
            program.kill()


def mount_elsewhere(installation: Installation, fault: ScheduledFault) -> None:
    """Mount the drive in a mount namespace of its own, as a container does: the worker's mount table does not show it.

    It ends at once if the worker holds the drive exclusively, or has overwritten the file system.
    """
    host = installation.host(fault)
    host.mount_point.mkdir(exist_ok=True)
    mount = ("sh", "-c", 'mount -o ro "$1" "$2" && exec sleep 600', "sh", host.device, str(host.mount_point))
    with subprocess.Popen(["unshare", "--mount", *mount], stderr=subprocess.DEVNULL) as program:
        _hold(installation, fault, program)


def use_unseen(installation: Installation, fault: ScheduledFault) -> None:
    """A program uses the drive, and its own descriptors do not show it: it has mapped a part of the drive, or another
    thread with descriptors of its own has opened it."""
    command = [sys.executable, "-c", _MAP if fault.choice < 0.5 else _OPEN_IN_THREAD, installation.host(fault).device]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as program:
        _hold(installation, fault, program)


def _hold(installation: Installation, fault: ScheduledFault, program: "subprocess.Popen[bytes]") -> None:
    try:
        installation.pause(fault.duration_s)
    finally:
        program.kill()


_LIBC = "import ctypes, os, sys, threading, time; libc = ctypes.CDLL(None, use_errno=True)\n"
_MAP = f"""{_LIBC}
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDWR)
libc.mmap(None, 4096, {mmap.PROT_READ}, {mmap.MAP_SHARED}, fd, 0)
os.close(fd)
time.sleep(600)
"""
_OPEN_IN_THREAD = f"""{_LIBC}
def use():
    libc.unshare(0x400)  # CLONE_FILES
    os.open(sys.argv[1], os.O_RDWR)
    time.sleep(600)
threading.Thread(target=use).start()
"""


def remove_drive(installation: Installation, fault: ScheduledFault) -> None:
    """The drive is absent when the worker starts, and comes back later. The worker is then started again."""
    host = installation.host(fault)
    queue, before = Path("/sys/block") / Path(host.device).name / "queue", disks.queue_settings(host.device)
    with installation.supervisor.paused(host.worker):
        kill(installation, host.worker)
        processes.run(["losetup", "--detach", host.device])
        await_condition(lambda: host.device not in processes.run(["losetup", "--list"]), limit_s=DETACHED_WITHIN_S)
    installation.pause(fault.duration_s)
    if not await_condition(lambda: _is_attached(host), limit_s=ATTACHED_WITHIN_S):
        raise ToolError(f"{host.device} could not be attached again within {ATTACHED_WITHIN_S:.0f} s.")
    for name in SETTINGS:  # a loop device does not keep them
        (queue / name).write_text(before[name])
    terminate(installation, host.worker)


def _is_attached(host: StorageHost) -> bool:
    """The kernel refuses while a program has the empty device open exclusively, as another fault of the round may."""
    try:
        processes.run(["losetup", host.device, str(host.image)])
    except ToolError:
        return False
    return True


# ---- quarantine


def quarantine_drive(installation: Installation, fault: ScheduledFault) -> None:
    """A program of an earlier trial waits for the drive and cannot be killed, until the host is restarted."""
    host = installation.host(fault)
    with _stuck_program(host) as is_alive:
        for _ in range(max(1, int(fault.duration_s / 0.2))):
            is_alive()
            installation.pause(0.2)
    terminate(installation, host.worker)


@contextmanager
def _stuck_program(host: StorageHost) -> Iterator[Callable[[], None]]:
    """Inside, the program and its record exist, also after a restart of the worker killed and forgot it."""
    digest = hashlib.sha256(str(host.state_folder.resolve()).encode()).hexdigest()[:12]
    name = f"{uuid.uuid4()}.0"
    marker = f"sweetspot-{digest}/{name}"
    record = {"marker": marker, "drives": [loop_device.stable_id(host.device)], "stuck": True}
    path = host.state_folder / "scopes" / f"{name}.json"
    running: list[subprocess.Popen[bytes]] = []

    def is_alive() -> None:
        if not running or running[-1].poll() is not None:
            running.append(subprocess.Popen(["sleep", "600"], env={"SWEETSPOT_SCOPE": marker}))
        with contextlib.suppress(OSError):  # the disk may be full
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_text(json.dumps(record))

    is_alive()
    try:
        yield is_alive
    finally:
        for each in running:
            each.kill()
            each.wait()


# ---- a purge that was killed


def leave_password(installation: Installation, fault: ScheduledFault) -> None:
    """The worker is killed while it erases a drive, which has a password then. Only the journal knows it."""
    host = installation.host(fault)
    with installation.supervisor.paused(host.worker):
        kill(installation, host.worker)
        installation.pause(0.5)
        with sqlite3.connect(host.state_folder / "journal.db", timeout=5) as journal:
            insert = "insert or replace into passwords (stable_id, serial, device, password) values (?, '', ?, ?)"
            journal.execute(insert, (loop_device.stable_id(host.device), Path(host.device).name, PASSWORD))
        host.drive_password.write_text(PASSWORD)
        installation.pause(fault.duration_s if fault.choice < 0.5 else 0)


# ---- the tool of a RAID controller


def hang_storcli(installation: Installation, fault: ScheduledFault) -> None:
    """storcli does not end after it applied a change. In half of the cases, the worker is killed while it waits.

    The worker changes and restores the cache policy once a run.
    """
    host = installation.host(fault)
    host.controller.hung.unlink(missing_ok=True)
    host.controller.hangs.touch()
    try:
        until = time.monotonic() + HANGS_WITHIN_S
        while not host.controller.hung.exists():
            if time.monotonic() > until:
                raise ToolError(f"No policy was changed within {HANGS_WITHIN_S:g} s.")
            installation.pause(0.05)
        if fault.choice < 0.5:
            kill(installation, host.worker)
        installation.pause(fault.duration_s)
    finally:
        host.controller.hangs.unlink(missing_ok=True)  # another such fault may have ended


FAULTS: dict[str, Callable[[Installation, ScheduledFault], None]] = {
    "open drive": _opener(0),  # as QEMU does
    "hold drive": _opener(os.O_EXCL),  # as LVM does
    "mount drive": mount_drive,
    "second path": add_second_path,
    "hidden loop": add_hidden_loop,
    "busy drive": keep_busy,
    "hidden mount": mount_elsewhere,
    "hidden user": use_unseen,
    "remove drive": remove_drive,
    "quarantine drive": quarantine_drive,
    "password left": leave_password,
    "hang storcli": hang_storcli,
}
