"""Decide whether a line of the kernel's log is about the trial's devices or about other devices of this host.

A line is about other devices only if it names known devices and none of them belongs to the trial. In doubt, the line
counts as the trial's: it names no device, or one that did not exist when the trial started, or an adapter by the
driver's name (mpt3sas_cm0), or a loop device whose file may be on the trial's drives.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from worker.inventory import sysfs
from worker.inventory.sysfs import SYS
from worker.open_target import OpenTarget

# Names in a device's sysfs path that also occur in log lines: ATA port, SCSI host and address, PCI function.
_PCI_ADDRESS = sysfs.PCI_ADDRESS.pattern.removeprefix("^").removesuffix(r"\Z")
_ON_THE_WAY = re.compile(rf"ata\d+|host\d+|\d+:\d+:\d+:\d+|nvme\d+|virtio\d+|{_PCI_ADDRESS}", re.ASCII)


class KernelNames:
    """Names of the trial's devices and of other devices. Without names of its own, every line is the trial's."""

    def __init__(self, own: Collection[str] = (), others: Collection[str] = ()) -> None:
        self._own = frozenset(own)
        known = sorted({*own, *others}, key=len, reverse=True) if own else []
        self._known = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, known))})(?!\w)", re.ASCII) if known else None

    def elsewhere(self, text: str) -> bool:
        """True if the text names other devices of this host, and none of the trial's."""
        found = set(self._known.findall(text)) if self._known else set()
        return bool(found) and not found & self._own


def kernel_names(open_targets: Iterable[OpenTarget], sys: Path = SYS) -> KernelNames:
    """The names of the host's current devices, for a trial on these targets."""
    devices = _closure(
        [name for open_target in open_targets for name in (*open_target.devices, *open_target.members)], sys
    )
    if devices is None:
        return KernelNames()
    every = sysfs.names(sys)
    on_ours = (name for name in every if sysfs.backing_file(name, sys) and _lies_on(name, sys) in {"", *devices})
    own = {called for name in {*devices, *on_ours} for called in _called(name, sys)}
    return KernelNames(own, {called for name in every for called in _called(name, sys)} - own)


def _closure(names: Iterable[str], sys: Path) -> set[str] | None:
    """The devices, all devices below them, and all above those; None if a device is on an unknown one."""
    found: set[str] = set()
    todo = [name for name in names if sysfs.exists(name, sys)]
    if not todo:
        return None
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        todo += sysfs.below(name, sys)
        if not sysfs.parents(name, sys):
            found.update(sysfs.above(name, sys))
        if sysfs.backing_file(name, sys):
            if not (under := _lies_on(name, sys)):
                return None
            todo.append(under)
    return found


def _lies_on(loop: str, sys: Path) -> str:
    """The device that contains the file of a loop device, "" if unknown."""
    try:
        numbers = os.stat(sysfs.backing_file(loop, sys)).st_dev  # noqa: PTH116 - the one call is enough
    except OSError:
        return ""
    return sysfs.name_of(f"{os.major(numbers)}:{os.minor(numbers)}", sys)


def _called(name: str, sys: Path) -> Iterator[str]:
    """Names of the device in log lines, and of the ports and functions in its path."""
    yield name
    for way in sysfs.ways(name, sys):
        yield from filter(_ON_THE_WAY.fullmatch, way.parts)
