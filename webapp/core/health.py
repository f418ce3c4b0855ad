"""Health checks for load balancers and service managers: the parts that this server needs."""

import logging
from collections.abc import Callable, Collection, Iterable

import redis
from django.db import DatabaseError, connection, transaction

from webapp.core import heartbeats, migration_hashes
from webapp.core.redis_client import redis_client

log = logging.getLogger(__name__)

OTHER_MIGRATIONS = (
    "The migrations of the database do not match this release. Run `manage.py check_migrations`: it says what to do."
)


def readiness(without: Collection[str] = ()) -> dict[str, bool]:
    """Name of a part -> whether it works; parts in `without` are not checked, and without tasks beat is not either.

    The log says why a part fails, the response does not.
    """
    if "tasks" in without:
        without = {*without, "beat"}
    return {name: _holds(name, check) for name, check in _CHECKS.items() if name not in without}


def _holds(name: str, check: Callable[[], bool]) -> bool:
    try:
        return check()
    except (DatabaseError, redis.RedisError, OSError) as error:
        log.warning("not ready, %s: %s", name, error)
        return False


def _database() -> bool:
    """Whether it answers and its disk has room: the rows of the query exceed work_mem and go to a temporary file."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '64kB'")
        cursor.execute("SELECT count(*) FROM generate_series(1, 20000)")
        return bool(cursor.fetchone())


def _migrations() -> bool:
    """Whether the database has exactly the migrations of this release, with the same content."""
    if mismatch := migration_hashes.compare_database():
        log.warning("not ready, migrations: %s", mismatch.sentences)
        return False
    return not migration_hashes.pending()


def _broker() -> bool:
    with redis_client() as client:
        return bool(client.ping())


def _beat() -> bool:
    """Whether beat runs."""
    return _all_recent([heartbeats.BEAT], "not ready, beat: %s. Start beat.")


def _tasks() -> bool:
    """Whether the ticks run: beat sends them, and the Celery worker executes them."""
    hint = "Start the Celery worker of the queue `server`, and beat if it is not running."
    return _all_recent(heartbeats.NEEDED, f"not ready, tasks: the %s. {hint}")


def _all_recent(names: Iterable[str], message: str) -> bool:
    ages_s = heartbeats.ages_s()
    silent = {name: ages_s.get(name) for name in names if not _is_recent(ages_s.get(name))}
    for name, age_s in silent.items():
        log.warning(message, _silence(name, age_s))
    return not silent


def _is_recent(age_s: float | None) -> bool:
    return age_s is not None and abs(age_s) <= heartbeats.LATEST_S


def _silence(name: str, age_s: float | None) -> str:
    task = f"tick of {name}" if name == heartbeats.SCHEDULES else name
    if age_s is None:
        return f"{task} never ran"
    if age_s < 0:
        return f"{task} last ran {-age_s:.0f} s ahead of the database's clock, which was set back"
    return f"{task} last ran {age_s:.0f} s ago"


_CHECKS: dict[str, Callable[[], bool]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
    "beat": _beat,
    "tasks": _tasks,
}
