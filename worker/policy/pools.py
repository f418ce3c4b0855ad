"""Pools of a policy: drives that layouts may be built from.

A `[[pool]]` names targets of the same file. Each is a whole drive with `destroy = true`: its stable id and serial are
written once, and layouts are built only on drives that may be overwritten.
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
    """The stable id of a pool of drives (stable id, serial). Other drives, or another order, give another id."""
    digest = hashlib.sha256("\n".join(f"{identity} {serial}" for identity, serial in drives).encode()).hexdigest()
    return f"pool:{pool_id}:{digest[:12]}"
