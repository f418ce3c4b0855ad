"""Layouts of earlier trials: kept for a trial that needs the same one, otherwise taken down."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from worker.contract.items import SettingRestored
from worker.contract.layouts import Layout
from worker.inventory import sysfs
from worker.journal import BY_HAND, Journal, LayoutRecord
from worker.layouts.building import Built
from worker.layouts.steps import LayoutFailed
from worker.layouts.taking_down import drives_now, take_down
from worker.policy import PolicyEntry
from worker.recipes import layouts
from worker.recipes.layouts import Names
from worker.text_limits import MAX_LABEL, MAX_TEXT

NAME = "layout"  # of the layout in reports, among names of settings
BLANK = "blank drives"


def existing_layout(layout: Layout, entries: Sequence[PolicyEntry], *, run: str, journal: Journal) -> Built | None:
    """The run's complete and unaltered layout with this line on these drives, else None.

    A layout with an array that is degraded, checked or rebuilt is not used again: its speed would be another one.
    """
    wanted = [(entry.identity, entry.serial) for entry in entries]
    unaltered = (record for record in journal.layouts(run) if not record.altered)
    for record in unaltered:
        if record.line == layouts.write(layout) and [(d.stable_id, d.serial) for d in record.drives] == wanted:
            return _whole(layout, record)
    return None


def _whole(layout: Layout, record: LayoutRecord) -> Built | None:
    try:
        now = drives_now(layout, record)
    except LayoutFailed:
        return None
    names = Names(record.key, now.made)
    top = Path(layouts.top_path(layout, now.drives, names))
    if not top.exists() or (record.mount_point and not os.path.ismount(record.mount_point)):
        return None
    if not all(map(_at_rest, layouts.array_paths(layout, now.drives, names))):
        return None
    return Built(record, os.path.realpath(top), record.mount_point, now.members)


def _at_rest(path: str) -> bool:
    """Whether an array has all members and no check or rebuild. Also true for a device that is not an md array."""
    name = Path(path).resolve().name
    return sysfs.attribute(name, "md/degraded") in ("", "0") and sysfs.attribute(name, "md/sync_action") in ("", "idle")


def of_runs(journal: Journal, run: str | None = None) -> tuple[LayoutRecord, ...]:
    """Layouts that were built by trials of one run, or of all runs."""
    return tuple(record for record in journal.layouts(run) if record.run != BY_HAND)


def removal_command(record: LayoutRecord) -> str:
    """The command that takes the layout down."""
    return f"sweetspot-worker restore --layout {record.key}" if record.run == BY_HAND else "sweetspot-worker restore"


def restore(records: Sequence[LayoutRecord], *, state: Path, journal: Journal) -> Iterator[SettingRestored]:
    """Take layouts down; yield a report item for each. A layout that cannot be taken down stays in the journal."""
    for record in records:
        note = ""
        try:
            take_down(record, state=state, journal=journal)
        except LayoutFailed as error:
            note = error.message
        yield SettingRestored(
            at=time.time(),
            name=NAME,
            device=", ".join(drive.path.rpartition("/")[2] for drive in record.drives)[:MAX_LABEL],
            value=BLANK,
            observed="" if note else BLANK,
            restored=not note,
            note=note[:MAX_TEXT],
        )


def overlaps(record: LayoutRecord, entries: Sequence[PolicyEntry]) -> bool:
    """True if the layout uses one of these drives."""
    return not {drive.stable_id for drive in record.drives}.isdisjoint(entry.identity for entry in entries)


def built_on(journal: Journal) -> dict[str, LayoutRecord]:
    """The layout of this worker on each drive that one uses, by the drive's stable id."""
    return {drive.stable_id: record for record in journal.layouts() for drive in record.drives}
