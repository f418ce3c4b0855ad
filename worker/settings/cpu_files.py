"""Settings of the host with one file for each processor: frequency governor and energy preference.

Kernel: Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from worker.kernel.sysfs import SYS, text
from worker.settings.base import Setting, SettingError, SettingScope, read_file, refused, write_file

# Processor lists in the kernel's format, and values that differ between processors.

_LIST = re.compile(r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\Z")


def parse_list(words: str) -> tuple[int, ...]:
    """Parse `0-3,8`; () for an empty or malformed list."""
    if not _LIST.match(words):
        return ()
    ranges = (part.split("-") for part in words.split(","))
    return tuple(sorted({n for pair in ranges for n in range(int(pair[0]), int(pair[-1]) + 1)}))


def write_list(numbers: tuple[int, ...]) -> str:
    """Format numbers as `0-3,8`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def online(sys: Path = SYS) -> tuple[int, ...]:
    return parse_list(text(sys / "devices/system/cpu/online"))


def of_node(node: str, sys: Path = SYS) -> tuple[int, ...]:
    """The online processors of a NUMA node."""
    return parse_list(text(sys / f"devices/system/node/node{node}/cpulist"))


def join(values: Mapping[int, str]) -> str:
    """One value if it is the same on all processors, else `powersave@0-3;performance@4-7`."""
    groups: dict[str, list[int]] = {}
    for cpu, value in values.items():
        groups.setdefault(value, []).append(cpu)
    if len(groups) <= 1:
        return next(iter(groups), "")
    return ";".join(f"{value}@{write_list(tuple(cpus))}" for value, cpus in groups.items())


def split(joined: str, cpus: tuple[int, ...]) -> dict[int, str]:
    """The inverse of `join`; a single value applies to all of `cpus`."""
    if "@" not in joined:
        return dict.fromkeys(cpus, joined)
    pairs = (part.rpartition("@") for part in joined.split(";"))
    return {cpu: value for value, _, listed in pairs for cpu in parse_list(listed)}


class CpuFile(Setting):
    """One value for all processors. The captured state holds the value of each processor."""

    scope = SettingScope.HOST

    def __init__(self, name: str, file: str, listing: str, description: str, *, sys: Path = SYS) -> None:
        self.name = name
        self._file = file
        self._listing = listing
        self._description = description
        self._sys = sys

    def describe(self) -> str:
        return self._description

    def read(self, subject: str) -> str:
        found = {cpu: read_file(path, self.name) for cpu, path in self._paths().items()}
        if not found:
            raise refused(self.missing(subject))
        return join(found)

    def choices(self, subject: str) -> tuple[str, ...]:
        """The values that every processor supports."""
        try:
            offered = [read_file(path.parent / self._listing, self.name).split() for path in self._paths().values()]
        except SettingError:
            return ()
        return tuple(word for word in offered[0] if all(word in each for each in offered)) if offered else ()

    def apply(self, subject: str, value: str) -> None:
        listed = self.choices(subject)
        if value not in listed:
            raise refused(f"{self.name} cannot be {value!r}; possible values: {', '.join(listed) or 'none'}.")
        self.restore(subject, value)

    def restore(self, subject: str, state: str) -> None:
        paths = self._paths()
        for cpu, value in split(state, tuple(paths)).items():
            if cpu in paths and read_file(paths[cpu], self.name) != value:
                write_file(paths[cpu], value, f"{self.name} of CPU {cpu}")

    def missing(self, subject: str) -> str:
        return f"This host has no {self.name}: the kernel does not control CPU frequency (guest, or BIOS)."

    def _paths(self) -> dict[int, Path]:
        directory = self._sys / "devices/system/cpu"
        found = {cpu: directory / f"cpu{cpu}" / "cpufreq" / self._file for cpu in online(self._sys)}
        return {cpu: path for cpu, path in found.items() if path.exists()}


CPU_GOVERNOR = CpuFile(
    "cpu.governor", "scaling_governor", "scaling_available_governors", "policy that chooses the CPU frequency"
)
CPU_ENERGY_PREFERENCE = CpuFile(
    "cpu.energy_preference",
    "energy_performance_preference",
    "energy_performance_available_preferences",
    "the processors' balance of speed and power (energy_performance_preference)",
)


# The deepest idle state that processors may enter. Deeper states add latency to every completion.
#
# Kernel: Documentation/admin-guide/pm/cpuidle.rst. The value is the number of the deepest state that is allowed: 0
# leaves only polling. The captured state lists the disabled states of each processor.


class DeepestIdleState(Setting):
    name = "cpu.deepest_idle_state"
    scope = SettingScope.HOST

    def __init__(self, sys: Path = SYS) -> None:
        self._sys = sys

    def describe(self) -> str:
        return "deepest idle state (C-state) of the processors, by its number; 0 is polling only"

    def read(self, subject: str) -> str:
        """A number; if processors differ or a state in between is disabled, one digit for each state: `001@0-3`."""
        state = self.capture(subject)
        depth = len(state.rstrip("1")) - 1
        regular = "@" not in state and "1" not in state[: depth + 1] and depth >= 0
        return str(depth) if regular else state

    def capture(self, subject: str) -> str:
        """One digit for each state; 1 means disabled."""
        found = {cpu: "".join(read_file(f, self.name) for f in files) for cpu, files in self._files().items()}
        if not found:
            raise refused(self.missing(subject))
        return join(found)

    def choices(self, subject: str) -> tuple[str, ...]:
        return tuple(str(number) for number in range(self._count()))

    def apply(self, subject: str, value: str) -> None:
        count = self._count()
        if value not in self.choices(subject):
            raise refused(f"{self.name} cannot be {value!r}; the states of this host are numbered 0 to {count - 1}.")
        depth = int(value)
        self.restore(subject, "0" * (depth + 1) + "1" * (count - depth - 1))

    def restore(self, subject: str, state: str) -> None:
        files = self._files()
        for cpu, digits in split(state, tuple(files)).items():
            for file, digit in zip(files.get(cpu, []), digits, strict=False):
                if read_file(file, self.name) != digit:
                    write_file(file, digit, f"{self.name} of CPU {cpu}")

    def missing(self, subject: str) -> str:
        return f"This host has no {self.name}: its kernel has no cpuidle states."

    def _count(self) -> int:
        return min((len(files) for files in self._files().values()), default=0)

    def _files(self) -> dict[int, list[Path]]:
        directory = self._sys / "devices/system/cpu"
        states = {cpu: sorted((directory / f"cpu{cpu}/cpuidle").glob("state[0-9]")) for cpu in online(self._sys)}
        return {cpu: [state / "disable" for state in each] for cpu, each in states.items() if each}


DEEPEST_IDLE_STATE = DeepestIdleState()
