"""Quarantined drives: a program on them could not be killed, so it may still write. Nothing else runs on them.

The quarantine ends when the processes are gone, or when a person says so: `sweetspot-worker forget NAME`.
"""

from collections.abc import Collection
from pathlib import Path

from worker.guard.refusal import GuardRefused
from worker.process import stuck_scopes


def quarantined(state: Path) -> dict[str, str]:
    """Stable ids of the drives, with the reason."""
    return {
        drive: f"a program of the worker on {drive} cannot be killed ({scope.name}). Restart the host, or replace the "
        f"drive. If the program is gone: sweetspot-worker forget {scope.name}"
        for scope in stuck_scopes(state)
        for drive in scope.drives
    }


def refuse_quarantined(drives: Collection[str], state: Path) -> None:
    """`drives`: stable ids."""
    known = quarantined(state)
    if found := next((drive for drive in drives if drive in known), ""):
        raise GuardRefused("guard_quarantined", f"The drive is quarantined: {known[found]}.")
