"""What must be there for this server to do its work: asked by load balancers and service managers."""

import logging
from collections.abc import Callable

import redis
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from webapp.core.redis_client import redis_client

log = logging.getLogger(__name__)


def readiness() -> dict[str, bool]:
    """Name of a part -> is it there. Why not goes to the log, not to whoever asks."""
    return {name: _holds(name, check) for name, check in _CHECKS.items()}


def _holds(name: str, check: Callable[[], bool]) -> bool:
    try:
        return check()
    except (DatabaseError, redis.RedisError, OSError) as error:
        log.warning("not ready, %s: %s", name, error)
        return False


def _database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchone())


def _migrations() -> bool:
    """No migration of this version is missing in the database."""
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _broker() -> bool:
    with redis_client() as client:
        return bool(client.ping())


_CHECKS: dict[str, Callable[[], bool]] = {"database": _database, "migrations": _migrations, "broker": _broker}
