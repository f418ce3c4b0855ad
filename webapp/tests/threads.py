"""Calls in threads that start together."""

import threading
from collections.abc import Callable

from django.db import connection, connections


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Make the calls in threads with connections of their own, all let go together; what they returned or raised."""
    barrier, found = threading.Barrier(len(calls)), []

    def go(call: Callable[[], object]) -> None:
        try:
            connection.ensure_connection()
            barrier.wait(10)
            found.append(call())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            found.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=go, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == len(calls)
    return found
