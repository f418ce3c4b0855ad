"""Pools of the policy: drives on which layouts may be built.

A `[[pool]]` lists targets of the same file. Each target is a whole drive with `destroy = true`, so that its stable id
and serial are written only once, and layouts are built only on drives that may be overwritten.
"""

import hashlib
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from worker.contract.base import Id


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[pool]]`. Layouts take its drives in this order."""

    id: Id
    drives: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=64)]


def pool_identity(pool_id: str, drives: Iterable[tuple[str, str]]) -> str:
    """The stable id of a pool of drives (stable id, serial). It depends on the drives and their order."""
    digest = hashlib.sha256("\n".join(f"{identity} {serial}" for identity, serial in drives).encode()).hexdigest()
    return f"pool:{pool_id}:{digest[:12]}"
