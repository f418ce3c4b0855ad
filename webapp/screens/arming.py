"""Drives whose serial numbers a person must type before they are overwritten."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from webapp.hosts.inventory.store import contents
from webapp.hosts.models import Target


@dataclass(frozen=True)
class DriveToArm:
    target: Target
    content: str  # its current content, in words
    typed: str = ""  # typed serial number in a refused form
    problem: str = ""  # problem of the typed serial number


def drives_to_arm(targets: Collection[Target], typed: Sequence[str] = ()) -> list[DriveToArm]:
    """The hosts of `targets` must be fetched with them. `typed`: serial numbers of a refused form, one per drive."""
    contents_by_target = contents(targets)
    serials = [*typed, *[""] * len(targets)]
    return [
        DriveToArm(target, contents_by_target[target.pk], serial, _problem(target, serial) if typed else "")
        for target, serial in zip(targets, serials, strict=False)
    ]


def _problem(target: Target, serial: str) -> str:
    if serial == target.arming_serial:
        return ""
    what = "serial" if target.serial else "id"
    return f"This is not the {what} of {target}. Type {target.arming_serial}."
