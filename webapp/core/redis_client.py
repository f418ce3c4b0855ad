"""A direct connection to the broker for tasks outside Celery: users, queue lengths, health."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis
from django.conf import settings

LIMIT_S = 3.0


@contextmanager
def redis_client() -> Iterator[redis.Redis]:
    """A client as the server's own user; every call ends within LIMIT_S. Raises redis.RedisError on use."""
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=LIMIT_S, socket_timeout=LIMIT_S, **settings.BROKER_TLS
    )
    try:
        yield client
    finally:
        client.close()
