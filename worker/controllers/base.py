"""The interface of a controller tool.

An adapter uses one tool: it lists all controllers, reads one virtual drive, sets one cache policy of it, and, if
supported, creates and deletes virtual drives. Cache policies have the values of `worker.contract.inventory`,
independent of the tool's spelling.
"""

from abc import ABC, abstractmethod
from enum import StrEnum

from worker.contract.inventory import Controller, PhysicalDrive, VirtualDrive
from worker.contract.layouts import Layout
from worker.process.run import ToolError, ToolOutput, ask, find
from worker.recipes.layouts import virtual_drives

# A busy controller answers slowly, and `show all` queries each of its drives.
ANSWER_LIMIT_S = 20.0
MAX_MESSAGE = 500


class CachePolicy(StrEnum):
    """The field of `VirtualDrive` with the configured value."""

    WRITE_CACHE = "write_cache"
    READ_AHEAD = "read_ahead"
    IO = "io_policy"
    DISK_CACHE = "disk_cache"
    BAD_BATTERY = "bad_battery"  # not a separate setting: it belongs to the write cache


class Adapter(ABC):
    """One controller tool. Every method raises ToolError with the tool's message."""

    name: str
    programs: tuple[str, ...]  # possible program names, the preferred one first
    drivers: tuple[str, ...]  # kernel drivers of the controllers that it may support

    @abstractmethod
    def read_controllers(self) -> tuple[Controller, ...]:
        """Every controller, with its virtual and physical drives."""

    @abstractmethod
    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        """The current state of one virtual drive."""

    @abstractmethod
    def values(self, policy: CachePolicy) -> tuple[str, ...]:
        """The values that can be set; () if the tool cannot set the policy for a single virtual drive."""

    @abstractmethod
    def set(self, controller: str, number: str, policy: CachePolicy, value: str) -> None:
        """Set one of `values`. Read the value back afterwards."""

    def create(self, controller: str, slots: tuple[str, ...], layout: Layout, name: str) -> None:
        """Create a virtual drive for one array of the layout. Check the result afterwards."""
        self._refuse_if_it_makes_none()
        self.do(*virtual_drives.create(self.name, controller, slots, layout, name))

    def finish_creation(self, controller: str, number: str, layout: Layout, name: str) -> None:
        """Set the properties that need an existing virtual drive."""
        for command in virtual_drives.settle(self.name, controller, number, layout, name):
            self.do(*command)

    def delete(self, controller: str, number: str) -> None:
        """Delete a virtual drive. Never forced: the virtual drive stays if the tool refuses."""
        self._refuse_if_it_makes_none()
        self.do(*virtual_drives.delete(self.name, controller, number))

    @property
    def makes_virtual_drives(self) -> bool:
        return virtual_drives.family(self.name) is not None

    def do(self, *arguments: str) -> None:
        """Run a command that changes something, and check the tool's answer."""
        raise NotImplementedError

    def is_unconfigured(self, drive: PhysicalDrive) -> bool:
        """True for a good drive that is not in use, not a spare, and without a foreign configuration."""
        return False

    def _refuse_if_it_makes_none(self) -> None:
        if not self.makes_virtual_drives:
            raise ToolError(
                f"This worker cannot create virtual drives with {self.name}: it does not document which drive "
                "a command creates. Supported tools: storcli, perccli and MegaCli."
            )

    def is_at(self, drive: VirtualDrive, place: tuple[int, int, int]) -> bool:
        """True if the virtual drive is at this SCSI channel, target and unit; for tools without names."""
        return False

    def ask(self, *arguments: str) -> ToolOutput:
        program = find(self.programs)
        if not program:
            raise ToolError(f"{self.name} is not installed on this host.")
        return ask(program, *arguments, limit_s=ANSWER_LIMIT_S)

    def refused(self, words: str) -> ToolError:
        return ToolError(f"{self.name}: {' '.join(words.split())[:MAX_MESSAGE] or 'it failed without a message'}")


def find_drive(adapter: Adapter, drives: tuple[VirtualDrive, ...], number: str) -> VirtualDrive:
    found = next((drive for drive in drives if drive.number == number), None)
    if found is None:
        raise adapter.refused(f"virtual drive {number} no longer exists")
    return found
