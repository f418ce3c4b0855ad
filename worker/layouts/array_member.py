"""Replace the last member of a layout's md array, so that the kernel rebuilds it.

    journal: altered ─► fail ─► remove ─► erase its superblock, held exclusively ─► add

The journal marks the layout as altered before the first command, so no later trial uses it
(`layouts.existing_layout`). A layout is never repaired: the next trial that needs it builds it again.
"""

import time
from pathlib import Path

import msgspec

from worker.inventory import sysfs
from worker.journal import Journal, LayoutRecord
from worker.layouts import ownership, steps, wiping
from worker.layouts.steps import LayoutFailed
from worker.layouts.taking_down import drives_now
from worker.open_target import LayoutArray
from worker.recipes import layouts
from worker.recipes.layouts import Names, Step

REMOVE_LIMIT_S = 30.0  # a failed member stays busy until its I/O has ended
_AGAIN_S = 0.2


def array_of(record: LayoutRecord, *, state: Path, journal: Journal) -> LayoutArray:
    """The only array of a layout that was built."""
    last = _LastMember(record, state, journal)
    return LayoutArray(name=Path(last.array).resolve().name, remove_member=last.remove, add_member=last.add)


class _LastMember:
    def __init__(self, record: LayoutRecord, state: Path, journal: Journal) -> None:
        self._record = record
        self._state = state
        self._journal = journal
        self._names = Names(record.key)
        self.array = self._names.md(0)

    def remove(self) -> None:
        """Fail and remove the member, and erase it. Raises LayoutFailed."""
        path = self._path()
        self._refuse_foreign(path)
        self._journal.save_layout(msgspec.structs.replace(self._record, altered=True))
        self._run(f"fail {path}", "--fail", path)
        self._remove(path)
        with wiping.held_exclusively(path) as fd:
            self._refuse_foreign(path)
            wiping.wipe(path, fd, state=self._state)
        steps.wait_for_udev(state=self._state)

    def add(self) -> None:
        """Add the erased member again: the kernel rebuilds it. Raises LayoutFailed."""
        path = self._path()
        content = ownership.read_content(path)
        if not content.blank:
            raise LayoutFailed("layout_foreign", f"{path} was erased, but now contains {content}. It was not changed.")
        self._run(f"add {path}", "--add", path)

    def _path(self) -> str:
        """The drive or partition, found by the drive's stable id and serial."""
        layout = layouts.parse(self._record.line)
        (members,) = layouts.members(layout, drives_now(layout, self._record).drives)
        return members[-1]

    def _refuse_foreign(self, path: str) -> None:
        content = ownership.read_content(path)
        if content.blank or not ownership.belongs_to_layout(content, self._names, path):
            words = f"{path} is not a member of the array of layout {self._record.key}. It was not changed."
            raise LayoutFailed("layout_foreign", words)

    def _remove(self, path: str) -> None:
        until = time.monotonic() + REMOVE_LIMIT_S
        while True:
            try:
                return self._run(f"remove {path}", "--remove", path)
            except LayoutFailed:
                if time.monotonic() > until or not self._has(path):
                    raise
                time.sleep(_AGAIN_S)

    def _has(self, path: str) -> bool:
        return path.rpartition("/")[2] in sysfs.slaves(Path(self.array).resolve().name)

    def _run(self, words: str, option: str, path: str) -> None:
        step = Step(words, ("mdadm", "--manage", self.array, option, path))
        steps.run(step, state=self._state, drives=tuple(drive.stable_id for drive in self._record.drives))
