"""Restore settings and take down layouts that runs left."""

from collections.abc import Iterable

from worker import layouts
from worker.contract.items import SettingRestored
from worker.orders.context import HostContext
from worker.settings import session


def restore(host: HostContext, run: str | None = None) -> list[SettingRestored]:
    """Restore settings, then take layouts down, of one run or all: an array's settings disappear with it."""
    journal = host.journal
    settings = session.restore_all(journal) if run is None else session.restore_run(run, journal)
    return [*settings, *layouts.restore(layouts.of_runs(journal, run), state=host.state, journal=journal)]


def not_restored(items: Iterable[SettingRestored]) -> str:
    """Everything that could not be restored, with the reasons; "" if all was restored."""
    return "; ".join(f"{item.name} of {item.device or 'the host'}: {item.note}" for item in items if not item.restored)
