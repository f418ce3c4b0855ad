"""Checks a kept connection without the query `SELECT 1`, which every request would begin with."""

import select

from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """Whether the connection can be used again.

        If PostgreSQL ends a connection, its socket becomes readable. An idle connection without anything to read is
        usable. In any other state, ask PostgreSQL with a query.
        """
        connection = self.connection
        if connection is None or connection.closed:
            return False
        if connection.info.transaction_status == TransactionStatus.IDLE and not _readable(connection.fileno()):
            return True
        usable: bool = super().is_usable()
        return usable


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
