"""One at a time for each host: who gives it something to do, or takes up again what it had."""

import zlib
from uuid import UUID

from django.db import connection

_TURN = 0x5353  # first half of the key: other advisory locks of Sweetspot have another


def take_turn(host_id: UUID) -> None:
    """Wait until nobody else does so for this host; others wait until this transaction ends.

    The database's constraints would refuse a second active attempt as well, but as an error in its log. Two hosts
    may share a key; then they wait for each other for a moment.
    """
    key = zlib.crc32(host_id.bytes) - 2**31
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_TURN, key])
