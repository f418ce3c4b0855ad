"""The mechanism of all controller tools.

An adapter uses one tool: it lists all controllers, reads one virtual drive, sets one cache policy of it, and, if
supported, creates and deletes virtual drives. What differs between the tools is in tables and
three methods: the programs, the spelling of cache policies, the command that sets one, and the check of an answer.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import StrEnum

from worker.contract.base import MAX_LABEL
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
    spelling: Mapping[CachePolicy, Mapping[str, tuple[str, ...]]]  # of each value: the words that set it, in this order

    @abstractmethod
    def read_controllers(self) -> tuple[Controller, ...]:
        """Every controller, with its virtual and physical drives."""

    @abstractmethod
    def virtual_drive(self, controller: str, number: str) -> VirtualDrive:
        """The current state of one virtual drive."""

    @abstractmethod
    def set_command(self, controller: str, number: str, word: str) -> tuple[str, ...]:
        """The arguments that set one word of `spelling` for a virtual drive."""

    @abstractmethod
    def check(self, output: ToolOutput) -> None:
        """Raise ToolError unless the tool did everything that it was asked for."""

    def values(self, policy: CachePolicy) -> tuple[str, ...]:
        """The values that can be set; () if the tool cannot set the policy for a single virtual drive."""
        return tuple(self.spelling.get(policy, ()))

    def set(self, controller: str, number: str, policy: CachePolicy, value: str) -> None:
        """Set one of `values`. Read the value back afterwards."""
        for word in self.spelling[policy][value]:
            self.do(*self.set_command(controller, number, word))

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
        self.say(*arguments)

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

    def say(self, *arguments: str) -> str:
        """The checked output."""
        output = self.ask(*arguments)
        self.check(output)
        return output.out

    def refused(self, words: str) -> ToolError:
        return ToolError(f"{self.name}: {' '.join(words.split())[:MAX_MESSAGE] or 'it failed without a message'}")


def find_drive(adapter: Adapter, drives: tuple[VirtualDrive, ...], number: str) -> VirtualDrive:
    match = next((drive for drive in drives if drive.number == number), None)
    if match is None:
        raise adapter.refused(f"virtual drive {number} no longer exists")
    return match


_TARGETS_OF_A_CHANNEL, _FIRST_CHANNEL = 128, 2  # of virtual drives: megaraid_sas.h


def is_megaraid_target(drive: VirtualDrive, place: tuple[int, int, int]) -> bool:
    """`Adapter.is_at` of the tools for the driver megaraid_sas."""
    channel, target, _ = place
    return channel >= _FIRST_CHANNEL and drive.target == str(
        (channel - _FIRST_CHANNEL) * _TARGETS_OF_A_CHANNEL + target
    )


# Parse numbers and words of controller tools.

KIB = 1024
_SIZE = re.compile(r"([0-9.]+)\s*([KMGTP]?)i?B", re.IGNORECASE)
_RATE = re.compile(r"([0-9.]+)\s*Gb", re.IGNORECASE)
_SECTORS = re.compile(r"\[0x([0-9a-f]+) Sectors\]", re.IGNORECASE)
_NOTHING = ("", "-", "n/a", "na", "n.a.", "none", "unknown", "not available")


def size(words: str, *, unit: int) -> int | None:
    """`3.637 TB`, `64kB`, `1000.2GB` in bytes; `unit` is 1024 or 1000, because the text does not show it."""
    match = _SIZE.search(words)
    return round(float(match[1]) * unit ** " KMGTP".index(match[2].upper() or " ")) if match else None


def sectors(words: str, sector_bytes: int) -> int | None:
    """The exact size in bytes of `1.819 TB [0xe8e088b0 Sectors]`."""
    match = _SECTORS.search(words)
    return int(match[1], 16) * sector_bytes if match else None


def rate(words: str) -> int | None:
    """`12.0Gb/s`, `6.0Gbps` in bits per second."""
    match = _RATE.search(words)
    return round(float(match[1]) * 1e9) or None if match else None


def level(words: str) -> str:
    """`RAID5`, `Raid1+0`, `1+0`, `6 (ADG)`: RAID5, RAID10, RAID10, RAID6."""
    digits = re.sub(r"(?i)^raid[ -]?|\s*\(.*\)|\+", "", words.strip())
    return f"RAID{digits}" if digits.isdecimal() else words.strip()[:MAX_LABEL]


def wwn(words: str) -> str:
    """32 or 16 hexadecimal digits, in the format of block devices."""
    digits = words.strip().lower().removeprefix("0x")
    return f"wwn-0x{digits}" if re.fullmatch(r"[0-9a-f]{16}|[0-9a-f]{32}", digits) else ""


def known(words: object) -> str:
    """ "" for the texts that tools print for a missing value."""
    text = str(words).strip()
    return "" if text.lower() in _NOTHING else text[:MAX_LABEL]


Fields = Mapping[str, str]


def pairs(lines: Iterable[str], separator: str = ":") -> dict[str, str]:
    """`Name   : value` and `Name: value` by lower-case name; the first of several equal names."""
    values: dict[str, str] = {}
    for line in lines:
        name, between, value = line.partition(separator)
        if between:
            values.setdefault(" ".join(name.lower().split()), value.strip())
    return values
