"""Build layouts on drives and take them down, under the guard.

    policy's drives ─► guard (destroyable, armed, free) ─► journal ─► commands ─► device or mounted directory
    journal ─► still the worker's own? ─► commands, from the top ─► blank drives ─► dropped from the journal

The journal holds a layout from before its first command until its drives are verified to be blank, so a worker
that was killed in between takes it down at its next start. Everything that is made carries the layout's key (array
name, volume group, label, partition table's id); anything without the key is left alone.
"""

from worker.layouts.building import Built, build
from worker.layouts.existing import NAME, built_on, existing_layout, of_runs, overlaps, removal_command, restore
from worker.layouts.read_back import read_back
from worker.layouts.steps import LayoutFailed
from worker.layouts.taking_down import take_down

__all__ = [
    "NAME",
    "Built",
    "LayoutFailed",
    "build",
    "built_on",
    "existing_layout",
    "of_runs",
    "overlaps",
    "read_back",
    "removal_command",
    "restore",
    "take_down",
]
