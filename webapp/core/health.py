"""Whether the server works: its certificates, heartbeats of periodic tasks, and checks for load balancers and service
managers."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import redis
from cryptography import x509
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.db.models.functions import Extract, Now

from webapp.celery import redis_client
from webapp.core import migration_hashes
from webapp.core.models import Heartbeat

log = logging.getLogger(__name__)

# A certificate (SWEETSPOT_CERTIFICATES) of the private authority is renewed thirty days before its end.
WARN = timedelta(days=21)


def certificate_ends() -> Iterator[tuple[str, datetime]]:
    """Each file with the end of its first certificate. The log names files that cannot be read."""
    for path in settings.CERTIFICATES:
        try:
            yield path, x509.load_pem_x509_certificate(Path(path).read_bytes()).not_valid_after_utc
        except (OSError, ValueError) as error:
            log.warning("The certificate %s cannot be read: %s", path, error)


def certificate_warnings() -> list[str]:
    """A sentence for each certificate that has ended or will end soon, and for each file that cannot be read."""
    end_by_path = dict(certificate_ends())
    soon = datetime.now(UTC) + WARN
    late = [
        f"The certificate {path} expires on {end:%Y-%m-%d}. Renew it."
        for path, end in end_by_path.items()
        if end < soon
    ]
    unread = [f"The certificate {path} cannot be read." for path in settings.CERTIFICATES if path not in end_by_path]
    return late + unread


# The time at which each periodic task, beat and the backup last ran.
#
# Without beat or the server's Celery worker, no task runs.
#
# A periodic task calls `note` with its name, and so do beat and `manage.py note_backup`. /metrics shows all of them,
# /healthz checks beat and the ticks. All times come from the database's clock, so the clocks of several machines do not
# matter.

TICK = "tick"  # webapp.runs.tasks, every few seconds
SCHEDULES = "schedules"  # webapp.schedules.tasks
NOTICES = "notices"  # webapp.notices.tasks
BEAT = "beat"  # webapp.beat
BACKUP = "backup"
# once a day
TIDY_HOSTS, TIDY_RESULTS = "tidy_hosts", "tidy_results"
TIDY_SCHEDULES, TIDY_STORAGE = "tidy_schedules", "tidy_storage"
NEEDED = (TICK, SCHEDULES)
LATEST_S = 60.0  # an older time means that beat or the Celery worker is not running
DAILY_AT_LATEST_S = 2 * 86400.0


def note(name: str) -> None:
    """Record that the task of this name runs now."""
    now = Heartbeat(name=name, at=Now())
    Heartbeat.objects.bulk_create([now], update_conflicts=True, update_fields=["at"], unique_fields=["name"])


def note_daily(name: str) -> bool:
    """Record that this daily task runs now. Whether its last run is as long ago as usual; true for the first one.

    If it is not, either the server was off, or its clock jumped ahead and may soon be set back: a task that deletes old
    data then waits for its next run, a day later.
    """
    age_s = ages_s().get(name)
    note(name)
    return age_s is None or age_s <= DAILY_AT_LATEST_S


def last(name: str) -> datetime | None:
    """When the task last ran, by the database's clock."""
    return Heartbeat.objects.filter(name=name).values_list("at", flat=True).first()


def ages_s() -> dict[str, float]:
    """Seconds since each periodic task last ran; negative if the database's clock was set back since then."""
    rows = Heartbeat.objects.order_by("name").values_list("name", Extract(Now() - F("at"), "epoch"))
    return {name: float(age_s) for name, age_s in rows}


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
    return _all_recent([BEAT], "not ready, beat: %s. Start beat.")


def _tasks() -> bool:
    """Whether the ticks run: beat sends them, and the Celery worker executes them."""
    hint = "Start the Celery worker of the queue `server`, and beat if it is not running."
    return _all_recent(NEEDED, f"not ready, tasks: the %s. {hint}")


def _all_recent(names: Iterable[str], message: str) -> bool:
    ages = ages_s()
    silent = {name: ages.get(name) for name in names if not _is_recent(ages.get(name))}
    for name, age_s in silent.items():
        log.warning(message, _silence(name, age_s))
    return not silent


def _is_recent(age_s: float | None) -> bool:
    return age_s is not None and abs(age_s) <= LATEST_S


def _silence(name: str, age_s: float | None) -> str:
    task = f"tick of {name}" if name == SCHEDULES else name
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
