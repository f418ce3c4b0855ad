"""A lock per host. A transaction that creates or revives an order of the host holds the lock until it ends."""

import zlib
from uuid import UUID

from django.db import connection

_KEYSPACE = 0x5353  # first half of the key, different from Sweetspot's other advisory locks


def lock_host(host_id: UUID) -> None:
    """Wait for the lock; others wait until this transaction ends.

    The database's constraints would also refuse a second active attempt, but with an error in its log. Two hosts may
    share a key; they then wait for each other.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_KEYSPACE, _key(host_id)])


def try_lock_host(host_id: UUID) -> bool:
    """Take the lock if no other transaction has it; never wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_KEYSPACE, _key(host_id)])
        return bool(cursor.fetchone()[0])


def _key(host_id: UUID) -> int:
    return zlib.crc32(host_id.bytes) - 2**31
