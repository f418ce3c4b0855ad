"""A lock for each host: whoever gives it an order, or revives one, holds it until the end of the transaction."""

import zlib
from uuid import UUID

from django.db import connection

_KEYSPACE = 0x5353  # first half of the key: other advisory locks of Sweetspot have another


def lock_host(host_id: UUID) -> None:
    """Wait for the lock; others wait until this transaction ends.

    The database's constraints would refuse a second active attempt as well, but with an error in its log. Two hosts
    may share a key: they then wait for each other.
    """
    key = zlib.crc32(host_id.bytes) - 2**31
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_KEYSPACE, key])
