"""The targets of the host: directories and a file on XFS, scratch drives, and pools of them. All are loop devices.

Each directory has a disk of its own. The worker keeps test files until their disk is full, and removes only files of
the directory that needs space: with a common disk, the files of one directory could fill the other.

Nothing else of this machine is changed: settings of the directory and the file are those of their loop device.
"""

import json
import os
from pathlib import Path

from dev.faults.disks import queue_settings
from dev.stack import lifecycle, loop_device, processes, services
from dev.stack.loop_device import MIB
from dev.stack.policy import PolicyTarget, policy_text
from dev.stack.state import State

DIRECTORY, FILE, POOL = "directory", "file", "pool"
PAIRS = ("pair0", "pair1")  # pools of two drives each
DIRECTORIES = (DIRECTORY, "directory2")
SECOND = "second"  # the directory of a second host, and its worker
DISKS = (*DIRECTORIES, SECOND)
DRIVES = ("drive0", "drive1", "drive2", "drive3")
DRIVE_BYTES = 384 * MIB  # XFS needs 300 MiB
DISK_BYTES = 768 * MIB
FILE_BYTES = 128 * MIB
# "*" excludes these, which may risk data or affect other drives.
SETTINGS = ("*", "write_cache", "irq_affinity", "controller.write_cache", "controller.read_ahead")


def prepare(state: State) -> tuple[PolicyTarget, ...]:
    """Create the targets and the worker's policy. Raises ToolError."""
    drives = tuple(_drive(state, name) for name in DRIVES)
    targets = (*_on_disk(state), *drives)
    pools = {POOL: DRIVES, PAIRS[0]: DRIVES[:2], PAIRS[1]: DRIVES[2:]}
    named = [f'\n[[pool]]\nid = "{name}"\ndrives = {json.dumps(members)}\n' for name, members in pools.items()]
    state.write("policy.toml", "".join([policy_text(targets, writer="make presets"), *named]))
    return targets


def _drive(state: State, name: str) -> PolicyTarget:
    path = loop_device.attach(state.root / f"{name}.img", DRIVE_BYTES)
    return PolicyTarget(
        id=name, kind="block", path=path, stable_id=loop_device.stable_id(path), destroy=True, settings=SETTINGS
    )


def _on_disk(state: State) -> tuple[PolicyTarget, ...]:
    """Directories, each on a disk of its own, and a file of random data beside the first one."""
    for name in DISKS:
        _mount(state, name)
    file = mount_point(state, DIRECTORY) / FILE
    with file.open("wb") as opened:
        for _ in range(FILE_BYTES // MIB):
            opened.write(os.urandom(MIB))
    file.chmod(0o600)
    paths = {name: str(folder(state, name)) for name in DIRECTORIES}
    return (
        *(PolicyTarget(id=name, kind="directory", path=path, settings=SETTINGS) for name, path in paths.items()),
        PolicyTarget(id=FILE, kind="file", path=str(file), destroy=True, settings=SETTINGS),
    )


def _mount(state: State, name: str) -> None:
    """Create and mount a disk, with the folder of a directory target."""
    disk, mounted = loop_device.attach(_image(state, name), DISK_BYTES), mount_point(state, name)
    processes.run(["mkfs.xfs", "-q", "-f", disk])
    mounted.mkdir()
    processes.run(["mount", disk, str(mounted)])
    folder(state, name).mkdir(mode=0o700)


def _image(state: State, name: str) -> Path:
    return state.root / f"disk-of-{name}.img"


def mount_point(state: State, name: str) -> Path:
    return state.root / f"disk-of-{name}"


def folder(state: State, name: str) -> Path:
    return mount_point(state, name) / name


def remove(state: State) -> None:
    """Stop everything and remove all data."""
    processes.stop(state, SECOND, limit_s=services.WORKER_STOP_LIMIT_S)
    lifecycle.stop(state, quietly=True)
    for mounted in (mount_point(state, name) for name in DISKS):
        if mounted.is_mount():
            processes.run(["umount", str(mounted)])
    lifecycle.remove(state)


def devices(state: State) -> tuple[str, ...]:
    images = (*(state.root / f"{name}.img" for name in DRIVES), *(_image(state, name) for name in DISKS))
    return tuple(device for device in map(loop_device.attached, images) if device)


def settings(state: State) -> dict[str, dict[str, str]]:
    return {device: queue_settings(device) for device in devices(state)}


def left_over(state: State) -> list[str]:
    """Signatures on the drives, mounted layouts, and files in the directory.

    The worker keeps the files that later trials of the same size use, and nothing else.
    """
    drives = (loop_device.attached(state.root / f"{name}.img") for name in DRIVES)
    signatures = processes.run(["wipefs", "--noheadings", *drives]).splitlines()
    files = [
        path
        for name in DISKS
        for path in folder(state, name).rglob("*")
        if path.is_file() and not path.name.startswith("sweetspot.")
    ]
    mounts = [
        line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if f"{state.root}/worker" in line
    ]
    return [
        *(f"signature {line}" for line in signatures),
        *(f"file {path.name}" for path in files),
        *(f"mounted {path}" for path in mounts),
    ]
