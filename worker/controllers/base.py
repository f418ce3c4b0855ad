"""The mechanism of all controller tools.

An adapter is a table of what differs between tools: programs, drivers, the spelling of cache policies, the command
that sets one, the state of an unused drive. Its methods call the tool, check an answer, and split it into fields.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from enum import StrEnum
from typing import ClassVar

import msgspec

from worker.contract.inventory import Controller, PhysicalDrive, VirtualDrive
from worker.contract.layouts import Layout
from worker.controllers import fields
from worker.controllers.fields import Fields, Sections
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


class Call(msgspec.Struct, frozen=True):
    """One call of a tool."""

    program: str
    arguments: tuple[str, ...]
    output: ToolOutput


CALLS: ContextVar[list[Call] | None] = ContextVar("calls", default=None)  # a list while calls are recorded


class Adapter(ABC):
    """One controller tool. Every method raises ToolError with the tool's message."""

    name: str
    programs: tuple[str, ...]  # possible program names, the preferred one first
    drivers: tuple[str, ...]  # kernel drivers of the controllers that it may support
    spelling: ClassVar[Mapping[CachePolicy, Mapping[str, tuple[str, ...]]]]  # of each value: the words that set it
    set_command: str  # sets a {word} of `spelling` for the virtual drive {number} of a {controller}
    unused: re.Pattern[str] = re.compile(r"(?!)")  # the state of a good drive without use; by default no state

    @abstractmethod
    def sections(self) -> Iterable[Sections]:
        """Call the tool for everything that it prints about every controller."""

    @abstractmethod
    def virtual_drive_fields(self, controller: str, number: str) -> Iterable[Fields]:
        """Call the tool for one virtual drive; its answer may contain others."""

    @abstractmethod
    def check(self, output: ToolOutput) -> None:
        """Raise ToolError unless the tool did everything that it was asked for."""

    def target(self, channel: int, target: int, unit: int) -> str:
        """`VirtualDrive.target` of the drive at this SCSI address; "" if the tool prints no addresses."""
        return ""

    def read_controllers(self) -> tuple[Controller, ...]:
        """Every controller, with its virtual and physical drives."""
        controllers = tuple(
            fields.controller(each, f"{self.name} {each.controller.get('cli version', '')}".strip())
            for each in self.sections()
        )
        if not controllers:
            raise self.refused("it lists no controller")
        return controllers

    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        """The current state of one virtual drive."""
        drives = map(fields.virtual_drive, self.virtual_drive_fields(controller, number))
        match = next((drive for drive in drives if drive.number == number), None)
        if match is None:
            raise self.refused(f"virtual drive {number} no longer exists")
        return match

    def values(self, policy: CachePolicy) -> tuple[str, ...]:
        """The values that can be set; () if the tool cannot set the policy for a single virtual drive."""
        return tuple(self.spelling.get(policy, ()))

    def set(self, controller: str, number: str, policy: CachePolicy, value: str) -> None:
        """Set one of `values`. Read the value back afterwards."""
        for word in self.spelling[policy][value]:
            self.say(*self.set_command.format(controller=controller, number=number, word=word).split())

    def create(self, controller: str, slots: tuple[str, ...], layout: Layout, name: str) -> None:
        """Create a virtual drive for one array of the layout. Check the result afterwards."""
        self._refuse_if_it_makes_none()
        self.say(*virtual_drives.create(self.name, controller, slots, layout, name))

    def finish_creation(self, controller: str, number: str, layout: Layout, name: str) -> None:
        """Set the properties that need an existing virtual drive."""
        for command in virtual_drives.settle(self.name, controller, number, layout, name):
            self.say(*command)

    def delete(self, controller: str, number: str) -> None:
        """Delete a virtual drive. Never forced: the virtual drive stays if the tool refuses."""
        self._refuse_if_it_makes_none()
        self.say(*virtual_drives.delete(self.name, controller, number))

    @property
    def makes_virtual_drives(self) -> bool:
        return virtual_drives.family(self.name) is not None

    def _refuse_if_it_makes_none(self) -> None:
        if not self.makes_virtual_drives:
            raise ToolError(
                f"This worker cannot create virtual drives with {self.name}: it does not document which drive "
                "a command creates. Supported tools: storcli, perccli and MegaCli."
            )

    def is_unconfigured(self, drive: PhysicalDrive) -> bool:
        """True for a good drive that is not in use, not a spare, and without a foreign configuration."""
        return self.unused.fullmatch(drive.state) is not None

    def is_at(self, drive: VirtualDrive, place: tuple[int, int, int]) -> bool:
        """True if the virtual drive is at this SCSI channel, target and unit; for tools without names."""
        return bool(drive.target) and drive.target == self.target(*place)

    def ask(self, *arguments: str) -> ToolOutput:
        program = find(self.programs)
        if not program:
            raise ToolError(f"{self.name} is not installed on this host.")
        output = ask(program, *arguments, limit_s=ANSWER_LIMIT_S)
        if (calls := CALLS.get()) is not None:
            calls.append(Call(program, arguments, output))
        return output

    def say(self, *arguments: str) -> str:
        """The checked output."""
        output = self.ask(*arguments)
        self.check(output)
        return output.out

    def refused(self, words: str) -> ToolError:
        return ToolError(f"{self.name}: {' '.join(words.split())[:MAX_MESSAGE] or 'it failed without a message'}")
