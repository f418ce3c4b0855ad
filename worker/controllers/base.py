"""The interface of a controller tool.

An adapter speaks one tool: it looks at every controller that the tool sees, looks again at one virtual drive, sets
one policy of it, and makes and deletes virtual drives where it can. The words of policies are those of
`worker.contract.controllers`, whatever the tool calls them.
"""

from abc import ABC, abstractmethod
from enum import StrEnum

from worker.contract.controllers import Controller, PhysicalDrive, VirtualDrive
from worker.contract.layouts import Layout
from worker.process import Said, ToolError, ask, find
from worker.recipes.layouts import virtual_drives

# A controller answers slowly while it is busy, and `show all` asks each of its drives.
ANSWER_LIMIT_S = 20.0
MAX_MESSAGE = 500


class CachePolicy(StrEnum):
    """The field of `VirtualDrive` that says how it is set."""

    WRITE_CACHE = "write_cache"
    READ_AHEAD = "read_ahead"
    IO = "io_policy"
    DISK_CACHE = "disk_cache"
    BAD_BATTERY = "bad_battery"  # no setting of its own: it goes with the write cache


class Adapter(ABC):
    """One controller tool. Every method raises ToolError, with the tool's own words where it has any."""

    name: str
    programs: tuple[str, ...]  # the names it is installed under, the preferred one first
    drivers: tuple[str, ...]  # of the kernel, for controllers that it may know

    @abstractmethod
    def read_controllers(self) -> tuple[Controller, ...]:
        """Every controller, with its virtual and physical drives."""

    @abstractmethod
    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        """One virtual drive as it is now."""

    @abstractmethod
    def values(self, policy: CachePolicy) -> tuple[str, ...]:
        """What can be set; () for a policy that the tool cannot set for one virtual drive alone."""

    @abstractmethod
    def set(self, controller: str, number: str, policy: CachePolicy, value: str) -> None:
        """Set one of `values`. Read it back afterwards."""

    def create(self, controller: str, slots: tuple[str, ...], layout: Layout, name: str) -> None:
        """Make a virtual drive for one array of the layout. Check the result afterwards."""
        self._refuse_if_it_makes_none()
        self.do(*virtual_drives.create(self.name, controller, slots, layout, name))

    def finish_creation(self, controller: str, number: str, layout: Layout, name: str) -> None:
        """Set the properties that need an existing virtual drive."""
        for command in virtual_drives.settle(self.name, controller, number, layout, name):
            self.do(*command)

    def delete(self, controller: str, number: str) -> None:
        """Delete a virtual drive. Never forced: what the tool refuses stays."""
        self._refuse_if_it_makes_none()
        self.do(*virtual_drives.delete(self.name, controller, number))

    @property
    def makes_virtual_drives(self) -> bool:
        return virtual_drives.family(self.name) is not None

    def do(self, *arguments: str) -> None:
        """Run a command that changes something, and judge what the tool answers."""
        raise NotImplementedError

    def is_unconfigured(self, drive: PhysicalDrive) -> bool:
        """Good, and neither in use nor spare nor with a foreign configuration."""
        return False

    def _refuse_if_it_makes_none(self) -> None:
        if not self.makes_virtual_drives:
            raise ToolError(
                f"This worker makes no virtual drives with {self.name}: what it documents leaves open which drive "
                "comes of a command. storcli, perccli and MegaCli are spoken to."
            )

    def is_at(self, drive: VirtualDrive, place: tuple[int, int, int]) -> bool:
        """The kernel shows the virtual drive at this SCSI channel, target and unit; for tools that tell no names."""
        return False

    def ask(self, *arguments: str) -> Said:
        program = find(self.programs)
        if not program:
            raise ToolError(f"{self.name} is not installed on this host.")
        return ask(program, *arguments, limit_s=ANSWER_LIMIT_S)

    def refused(self, words: str) -> ToolError:
        return ToolError(f"{self.name}: {' '.join(words.split())[:MAX_MESSAGE] or 'it failed without a word'}")


def find_drive(adapter: Adapter, drives: tuple[VirtualDrive, ...], number: str) -> VirtualDrive:
    found = next((drive for drive in drives if drive.number == number), None)
    if found is None:
        raise adapter.refused(f"it has no virtual drive {number} any more")
    return found
