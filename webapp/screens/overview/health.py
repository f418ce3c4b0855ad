"""Problems of the server and of its hosts, for the overview."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from webapp.core.health import readiness
from webapp.runs.models import Attempt
from webapp.screens.hosts.views import HostRow, host_rows, listed_hosts

HOSTS_SHOWN = 6
_SERVER_PROBLEMS = {
    "database": "The database cannot write: its disk is full. Free space on the server.",
    "broker": "Redis does not answer, so no trial can start. Start it on the server.",
    "tasks": "The background tasks do not run. Start beat and the Celery worker of the queue server.",
}


@dataclass(frozen=True)
class Health:
    """`rows` are hosts, those with problems first; `more` is the number of further ones."""

    server: tuple[str, ...]
    rows: tuple[HostRow, ...]
    more: int
    more_with_problems: int


def health(active: Mapping[UUID, Attempt]) -> Health:
    """`active` attempts by host id. A fixed number of queries."""
    rows = sorted(host_rows(listed_hosts().filter(archived_at=None), active), key=_has_no_problem)
    rest = rows[HOSTS_SHOWN:]
    works = readiness(without=["migrations"])
    return Health(
        server=tuple(words for part, words in _SERVER_PROBLEMS.items() if not works[part]),
        rows=tuple(rows[:HOSTS_SHOWN]),
        more=len(rest),
        more_with_problems=sum(not _has_no_problem(row) for row in rest),
    )


def _has_no_problem(row: HostRow) -> bool:
    return not row.warnings and row.presence.state in ("done", "running")
