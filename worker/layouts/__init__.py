"""Drives put together and taken apart again, under the guard.

    policy's drives ─► guard (destroyable, armed, free) ─► journal ─► commands ─► device or mounted directory
    journal ─► is it still ours? ─► commands, from the top ─► blank drives ─► forgotten

The journal knows of a layout before its first command and until its drives are seen to be blank, so a worker
that was killed in between takes it down at its next start. Everything that is made bears the layout's key (array
name, volume group, label, partition table's id); what does not bear it is not ours and is left alone.
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
