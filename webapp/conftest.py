"""For all server tests: a queue of their own in the real Redis."""

from collections.abc import Iterator

import pytest

from webapp.celery import app


@pytest.fixture
def broker() -> Iterator[None]:
    """The broker, without what an earlier test has left in hosts' queues."""
    with app.connection_for_read() as connection:
        client = connection.default_channel.client
        _remove_queues(client)
        yield
        _remove_queues(client)


def _remove_queues(client: object) -> None:
    for key in client.scan_iter("host.*"):  # type: ignore[attr-defined]
        client.delete(key)  # type: ignore[attr-defined]
