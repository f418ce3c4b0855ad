"""`make lab ARGS=--plan`: everything of the lab that needs no guest, within seconds.

All parts are imported, their plans are checked by the product, the worker reads the guest's policy, the archive for the
guest is packed, and QEMU's arguments are computed. Nothing is started.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dev.console import say
from dev.django_setup import set_up_without_database
from dev.lab import worker_archive
from dev.lab.machine import Machine
from dev.stack.state import REPOSITORY

if TYPE_CHECKING:
    from webapp.plans.document import PlanDocument


def show_plan(parts: Sequence[str]) -> list[str]:
    """Print the plans of each part, and return the problems."""
    set_up_without_database()
    from webapp.plans.grids import document_problems

    problems: list[str] = []
    documents = _documents()
    for part in parts:
        say(f"{part}: {', '.join(document.title for document in documents.get(part, ())) or 'no plans'}")
        for document in documents.get(part, ()):
            problems += [f"{part}, {document.title}: {problem}" for problem in document_problems(document)]
    with tempfile.TemporaryDirectory() as folder:
        return [*problems, *_files(Path(folder))]


def _documents() -> "Mapping[str, Sequence[PlanDocument]]":
    """The plans of each part that has some."""
    from dev.lab import layouts, presets, purge, rebuild, restarts, settings, sweep

    return {
        "settings": settings.documents(),
        "sweep": [sweep.DOCUMENT],
        "layouts": [
            layouts.document("Layouts", layouts.LINES, layouts.SHORT),
            layouts.document("Interrupted", (*layouts.KILLED, *layouts.CUT, layouts.REUSED), layouts.LONG),
        ],
        "rebuild": [rebuild.IN_PART, *rebuild.COMPLETE, rebuild.LONG],
        "presets": presets.documents(),
        "purge": [purge.document(slug, method) for slug, methods in purge.METHODS.items() for method in methods],
        "install": [restarts.DOCUMENT],
    }  # fmt: skip


def _files(folder: Path) -> list[str]:
    """Problems with the guest's policy, archive and command."""
    from dev.lab.storage_host import BAYS, POOL, guest_policy, serials
    from worker import policy
    from worker.settings import SETTING_NAMES

    path = folder / "policy.toml"
    path.write_text(guest_policy())
    path.chmod(0o600)
    drives = [drive.serial for drive in policy.load(path, SETTING_NAMES).drives(POOL)]
    worker_archive.pack(REPOSITORY, folder / "guest.tar")
    machine = Machine(folder)
    machine.drives.mkdir()
    say(f"guest: {' '.join(machine.command(folder / 'pid'))}")
    return [] if drives == list(serials(*BAYS)) else [f"The policy of the guest has the drives {drives}."]
