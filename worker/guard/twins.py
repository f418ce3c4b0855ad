"""Other kernel names of the same drive: a LUN or SAS drive with two paths and without multipath.

A mount or an exclusive open of one name does not protect the others. The kernel treats them as different devices.
"""

from pathlib import Path

from worker.inventory import sysfs


def twins(name: str, sys: Path = sysfs.SYS) -> tuple[str, ...]:
    """Kernel names of the other paths to the disk of `name`; () if there is only one."""
    disk = sysfs.whole(name, sys)
    if sysfs.kind(disk, sys) != "disk":
        return ()
    related = {disk, *sysfs.below(disk, sys), *sysfs.above(disk, sys)}
    others = (other for other in sysfs.names(sys) if other not in related and sysfs.kind(other, sys) == "disk")
    return tuple(other for other in others if _same_drive(disk, other, sys))


def _same_drive(one: str, other: str, sys: Path) -> bool:
    """Compare world-wide names; if one of them is missing, serial, model, size and namespace."""
    names = [sysfs.wwid(each, sys) for each in (one, other)]
    if all(names):
        return names[0] == names[1]
    facts = [
        (
            sysfs.serial(each, sys),
            sysfs.model(each, sys),
            sysfs.size_bytes(each, sys),
            sysfs.attribute(each, "nsid", sys),
        )
        for each in (one, other)
    ]
    return bool(facts[0][0]) and facts[0] == facts[1]
