"""Stable ids of drives and targets: names that stay the same when a device gets another kernel name."""

import hashlib

MAX_ID = 100  # the contract's limit, in characters
UNSTABLE_PREFIX = "name:"  # the rest is a kernel name, which may be another disk after a reboot
PART = "-part"  # between the id of a disk and the rest of the identity of its partition
_HASHED = MAX_ID - 17  # characters of an id that stay before its hash


def is_stable(identity: str) -> bool:
    return not identity.startswith(UNSTABLE_PREFIX)


def shortened(identity: str) -> str:
    """Fit an id into the contract's limit; a longer id ends in a hash of the whole."""
    if len(identity) <= MAX_ID:
        return identity
    return f"{identity[:_HASHED]}~{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def is_part_of(identity: str, disk: str) -> bool:
    """Whether an identity may be that of a partition of this disk. `disk`: its stable id before it is shortened.

    Of an identity that was shortened, only the start can be compared.
    """
    start = f"{disk}{PART}"
    is_shortened = len(identity) == MAX_ID and identity[_HASHED] == "~"
    return identity.startswith(start[:_HASHED] if is_shortened else start)
