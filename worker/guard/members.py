"""Members of LVM, md, ZFS and other combined devices, found by their labels on a drive.

A member that is not in use on this host may be in use on another one, which shares the drive or gets it back. The
labels do not say reliably whose it is. So the guard refuses every member, whatever `destroy` says, unless the policy
lists its format in `destroy_members`.
"""

import os
from collections.abc import Collection

from worker.inventory import signature, sysfs
from worker.policy.model import MEMBER_FORMATS


def foreign_member(name: str, permitted: Collection[str]) -> str:
    """The first member found on the device or its partitions, in words; "" if there is none. Raises OSError."""
    for each in (name, *sysfs.partitions(name)):
        for found in _signatures(each):
            if found in MEMBER_FORMATS and found not in permitted:
                return f"{each} is a member of {found}"
    return ""


def _signatures(name: str) -> tuple[str, ...]:
    fd = os.open(sysfs.device_path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return signature.read_signatures(fd, sysfs.size_bytes(name))
    finally:
        os.close(fd)
