"""Stable ids of drives and targets: names that stay the same when a device gets another kernel name."""

import hashlib

MAX_ID = 100  # the contract's limit, in characters
UNSTABLE_PREFIX = "name:"  # the rest is a kernel name, which may be another disk after a reboot


def is_stable(identity: str) -> bool:
    return not identity.startswith(UNSTABLE_PREFIX)


def shortened(identity: str) -> str:
    """Fit an id into the contract's limit; a longer id ends in a hash of the whole."""
    if len(identity) <= MAX_ID:
        return identity
    return f"{identity[: MAX_ID - 17]}~{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
