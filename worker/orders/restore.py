"""Restore settings and take down layouts that runs left."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from worker import temporary
from worker.contract.base import MAX_LABEL, MAX_TEXT
from worker.contract.items import SettingRestored
from worker.drives.purge.ata import remove_password
from worker.journal import Journal
from worker.layouts import building
from worker.orders.context import HostContext
from worker.settings import session

PASSWORD, NO_PASSWORD = "password", "no password"  # in reports, among names and values of settings


def restore(host: HostContext, run: str | None = None) -> list[SettingRestored]:
    """Restore settings, then take layouts down, of one run or all: an array's settings disappear with it.

    For all runs, also remove temporary folders, and the passwords of drives that were being erased.
    """
    journal = host.journal
    journal.reserve.free_if_needed()
    removed = [] if run is not None else list(temporary.remove_recorded(journal))  # before the layouts with them
    settings = session.restore_all(journal) if run is None else session.restore_run(run, journal)
    taken_down = building.restore(building.of_runs(journal, run), state=host.state, journal=journal)
    passwords = remove_passwords(journal, host.state) if run is None else ()
    return [*settings, *removed, *taken_down, *passwords]


def remove_passwords(journal: Journal, state: Path) -> Iterator[SettingRestored]:
    """Remove the passwords that a killed worker left on drives; yield a report item for each."""
    for known in journal.passwords():
        note = remove_password(known, journal, state)
        yield SettingRestored(
            at=time.time(),
            name=PASSWORD,
            device=known.device[:MAX_LABEL],
            value=NO_PASSWORD,
            observed="" if note else NO_PASSWORD,
            restored=not note,
            note=note[:MAX_TEXT],
        )


def not_restored(items: Iterable[SettingRestored]) -> str:
    """Everything that could not be restored, with the reasons; "" if all was restored."""
    return "; ".join(f"{item.name} of {item.device or 'the host'}: {item.note}" for item in items if not item.restored)
