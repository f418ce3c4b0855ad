"""The drives that a person is asked about before they are overwritten."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from webapp.hosts.inventory.contents import contents
from webapp.hosts.models import Target


@dataclass(frozen=True)
class DriveToArm:
    target: Target
    content: str  # what is on it now, in words
    typed: str = ""  # as serial, in a form that was refused
    problem: str = ""  # of what was typed


def drives_to_arm(targets: Collection[Target], typed: Sequence[str] = ()) -> list[DriveToArm]:
    """`targets` come with their hosts. `typed`: the serials of a form that was refused, one a drive."""
    found = contents(targets)
    serials = [*typed, *[""] * len(targets)]
    return [
        DriveToArm(target, found[target.pk], serial, _problem(target, serial) if typed else "")
        for target, serial in zip(targets, serials, strict=False)
    ]


def _problem(target: Target, serial: str) -> str:
    if serial == target.arming_serial:
        return ""
    what = "serial" if target.serial else "id"
    return f"This is not the {what} of {target}. Type {target.arming_serial}."
