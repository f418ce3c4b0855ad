"""Like with like: where results were measured, and what must be equal there. Drives are compared in the same host at
the same controller, hosts and controllers with the same drives. Explore, Bench and Rankings read this rule here."""

from collections.abc import Collection, Iterable

from webapp.plans.values import Value
from webapp.results.reading.rows import LAYOUT_LABEL, ResultRow

HOST, CONTROLLER, DRIVE = "host", "controller", "drive"
NOT_STATED = "not stated"
PLACES_OF_DRIVES, PLACES_OF_HOSTS = (HOST, CONTROLLER), (DRIVE,)
_DRIVES = frozenset({"model", "serial", "target"})  # dimensions whose levels are drives
_HOSTS = frozenset({HOST, CONTROLLER})
OTHER_PLACES = (
    "drives are compared only in the same host at the same controller, hosts and controllers only with the same drives"
)
Place = tuple[str, ...]


def host_of(row: ResultRow) -> str:
    """A host that an import does not state is equal only to that of the same import."""
    return row.host or f"{NOT_STATED} by {row.import_title}"


def controller_of(row: ResultRow) -> str:
    return row.controller or NOT_STATED


def drive_at(row: ResultRow) -> str:
    """Model and layout. A drive of an unknown model is only equal to itself. The number of drives at once and the
    layout of an own result are factors of its point."""
    model = row.model or f"{row.target_name}, model {NOT_STATED}"
    return ", ".join(filter(None, (model, row.facts.get(LAYOUT_LABEL, ""))))


_READ = {HOST: host_of, CONTROLLER: controller_of, DRIVE: drive_at}


def equal_places(series: Collection[str]) -> tuple[str, ...]:
    """What series by these dimensions must share; empty if they name both drives and hosts, or neither."""
    drives, hosts = (not names.isdisjoint(series) for names in (_DRIVES, _HOSTS))
    if drives == hosts:
        return ()
    return PLACES_OF_DRIVES if drives else PLACES_OF_HOSTS


def place_of(row: ResultRow, names: Iterable[str]) -> dict[str, Value]:
    """The place of a result, as parts of its point."""
    return {name: _READ[name](row) for name in names}


def places_of(rows: Iterable[ResultRow], names: Collection[str]) -> frozenset[Place]:
    """Each place once: the levels of these names."""
    return frozenset([tuple(_READ[name](row) for name in names) for row in rows]) if names else frozenset()
