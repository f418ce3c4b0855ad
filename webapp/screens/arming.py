"""The drives that a person is asked about before they are overwritten."""

from collections.abc import Collection
from dataclasses import dataclass

from webapp.hosts.contents import contents
from webapp.hosts.models import Target


@dataclass(frozen=True)
class DriveToArm:
    target: Target
    content: str  # what is on it now, in words


def drives_to_arm(targets: Collection[Target]) -> list[DriveToArm]:
    """`targets` come with their hosts."""
    found = contents(targets)
    return [DriveToArm(target, found[target.pk]) for target in targets]
