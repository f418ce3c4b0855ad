"""Build layouts on drives and take them down, under the guard.

    policy's drives ─► guard (destroyable, armed, unused) ─► journal ─► commands ─► device or mounted directory
    journal ─► still the worker's? ─► commands, from the top down ─► blank drives ─► dropped from the journal

The journal contains a layout from before its first command until its drives are verified to be blank, so a worker that
was killed takes the layout down at its next start. Every part that the worker creates has the layout's key in it (array
name, volume group, label, id of the partition table). Nothing without the key is changed.
"""

from worker.layouts.array_member import array_of
from worker.layouts.building import Built, build
from worker.layouts.existing import NAME, built_on, existing_layout, of_runs, overlaps, removal_command, restore
from worker.layouts.read_back import read_back
from worker.layouts.steps import LayoutFailed
from worker.layouts.taking_down import take_down

__all__ = [
    "NAME",
    "Built",
    "LayoutFailed",
    "array_of",
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
