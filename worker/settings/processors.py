"""Settings of processors and interrupts: frequency governor, energy preference, idle states, interrupt affinity.

Kernel: Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path

from worker.kernel import pci
from worker.kernel.sysfs import SYS, text
from worker.process.run import ToolError, ToolOutput, ask
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
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


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
        self.description = description
        self._sys = sys

    def read(self, subject: str) -> str:
        values = {cpu: read_file(path, self.name) for cpu, path in self._paths().items()}
        if not values:
            raise refused(self.missing(subject))
        return join(values)

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
        paths = {cpu: directory / f"cpu{cpu}" / "cpufreq" / self._file for cpu in online(self._sys)}
        return {cpu: path for cpu, path in paths.items() if path.exists()}


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
    description = "deepest idle state (C-state) of the processors, by its number; 0 is polling only"
    scope = SettingScope.HOST

    def __init__(self, sys: Path = SYS) -> None:
        self._sys = sys

    def read(self, subject: str) -> str:
        """A number; if processors differ or a state in between is disabled, one digit for each state: `001@0-3`."""
        state = self.capture(subject)
        depth = len(state.rstrip("1")) - 1
        regular = "@" not in state and "1" not in state[: depth + 1] and depth >= 0
        return str(depth) if regular else state

    def capture(self, subject: str) -> str:
        """One digit for each state; 1 means disabled."""
        states = {cpu: "".join(read_file(f, self.name) for f in files) for cpu, files in self._files().items()}
        if not states:
            raise refused(self.missing(subject))
        return join(states)

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


# irqbalance, the daemon that moves interrupts between processors: on or off, through systemd.
#
# Stopping the service does not disable it, so it starts again when the host restarts.

_UNIT = "irqbalance.service"
_SWITCH_LIMIT_S = 3.0
_WORDS = {"on": "start", "off": "stop"}


class IrqBalance(Setting):
    name = "irqbalance"
    description = "the daemon that moves interrupts between processors: on or off"
    scope = SettingScope.HOST
    rank = 0

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def discover(self, subject: str) -> bool:
        try:
            return "LoadState=loaded" in self._systemctl("show", "--property=LoadState", _UNIT).out
        except SettingError:
            return False

    def read(self, subject: str) -> str:
        return "on" if self.running() else "off"

    def choices(self, subject: str) -> tuple[str, ...]:
        return tuple(_WORDS) if self.discover(subject) else ()

    def apply(self, subject: str, value: str) -> None:
        if value not in _WORDS:
            raise refused(f"irqbalance is on or off, not {value!r}.")
        output = self._systemctl(_WORDS[value], _UNIT)
        if output.exit_code:
            raise refused(f"irqbalance could not be switched {value}: {output.err.strip() or output.out.strip()}")
        self._wait_for(value)

    def missing(self, subject: str) -> str:
        if self.running():
            return "irqbalance is running, but not as a systemd service: this worker cannot switch it."
        return "This host has no irqbalance service."

    def running(self) -> bool:
        """Search all process names, because irqbalance may have been started by hand."""
        return any(_is_irqbalance(entry / "comm") for entry in self._proc.glob("[0-9]*"))

    def _wait_for(self, value: str) -> None:
        """Wait: systemd returns before the daemon's process has its name."""
        give_up_at = time.monotonic() + _SWITCH_LIMIT_S
        while self.read("") != value and time.monotonic() < give_up_at:
            time.sleep(0.01)

    def _systemctl(self, *words: str) -> ToolOutput:
        try:
            return ask("systemctl", "--no-ask-password", *words)
        except ToolError as error:
            raise refused(f"irqbalance: {error}") from error


def _is_irqbalance(comm: Path) -> bool:
    try:
        return comm.read_text().strip() == "irqbalance"
    except OSError:
        return False  # the process has just ended


IRQBALANCE = IrqBalance()


# Which processors handle the interrupts of a device's controller (Documentation/core-api/irq/irq-affinity.rst).
#
#     cpu3      all of them on processor 3
#     node1     round robin over the processors of NUMA node 1
#     local     round robin over the processors of the controller's node
#     spread    round robin over all processors
#     all       any processor; the interrupt controller chooses
#
# The kernel manages interrupts that belong to one queue each (most of NVMe, newer HBAs) and rejects any other
# affinity with EIO; the error says so. irqbalance would move interrupts within seconds, so the setting is refused
# while irqbalance runs.

PROC = Path("/proc")
_FORM = re.compile(r"^(cpu[0-9]{1,4}|node[0-9]{1,3}|local|spread|all)\Z")


class IrqAffinity(Setting):
    name = "irq_affinity"
    description = "processors that handle the controller's interrupts: cpu<n>, node<n>, local, spread, all"
    scope = SettingScope.CONTROLLER
    by_name_only = True

    def __init__(self, sys: Path = SYS, proc: Path = PROC) -> None:
        self._sys = sys
        self._proc = proc

    def read(self, subject: str) -> str:
        """Processors of each interrupt: `24:0 25:1`."""
        numbers = self.numbers(subject)
        if not numbers:
            raise refused(self.missing(subject))
        return " ".join(f"{number}:{read_file(self._file(number), self._what(number))}" for number in numbers)

    def fact(self, subject: str) -> str:
        """Leaves out the interrupt numbers, which change at a restart; "" while irqbalance moves the interrupts."""
        return "" if IRQBALANCE.running() else " ".join(pair.partition(":")[2] for pair in self.read(subject).split())

    def apply(self, subject: str, value: str) -> None:
        wanted = self._wanted(subject, value)
        if IRQBALANCE.running():
            raise refused("irqbalance is running and would move the interrupts again: also set irqbalance to off.")
        self._refuse_managed(subject)
        for number, listed in wanted.items():
            write_file(self._file(number), listed, self._what(number))

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        wanted = self._wanted(subject, asked)
        observed_lists = dict(pair.split(":", 1) for pair in observed.split())
        return {n: parse_list(observed_lists.get(str(n), "")) for n in wanted} == {
            n: parse_list(listed) for n, listed in wanted.items()
        }

    def restore(self, subject: str, state: str) -> None:
        for pair in state.split():
            number, _, listed = pair.partition(":")
            if read_file(self._file(int(number)), self._what(int(number))) != listed:
                write_file(self._file(int(number)), listed, self._what(int(number)))

    def numbers(self, subject: str) -> tuple[int, ...]:
        """The controller's MSI interrupts if it has any, else its interrupt line."""
        return tuple(n for n in pci.interrupts(subject, self._sys) if self._file(n).exists())

    def missing(self, subject: str) -> str:
        return f"{subject} has no interrupts that are visible on this host."

    def _wanted(self, subject: str, value: str) -> dict[int, str]:
        """Processors of each interrupt. Raises SettingError for a value that is impossible on this host."""
        if not _FORM.match(value):
            raise refused(f"{self.name} cannot be {value!r}; possible values: cpu<n>, node<n>, local, spread, all.")
        chosen = self._chosen(subject, value)
        if not chosen:
            raise refused(f"{self.name} cannot be {value!r}: these processors are not online on this host.")
        numbers = self.numbers(subject)
        if value == "all":
            return dict.fromkeys(numbers, write_list(chosen))
        return {number: str(chosen[place % len(chosen)]) for place, number in enumerate(numbers)}

    def _chosen(self, subject: str, value: str) -> tuple[int, ...]:
        processors = online(self._sys)
        if value.startswith("cpu"):
            return tuple(cpu for cpu in processors if cpu == int(value[3:]))
        if value in ("spread", "all"):
            return processors
        node = value.removeprefix("node")
        if value == "local":
            node = text(self._sys / "bus/pci/devices" / subject / "numa_node")
            node = "0" if node == "-1" else node  # a host with a single node reports no node
        return tuple(cpu for cpu in of_node(node, self._sys) if cpu in processors)

    def _refuse_managed(self, subject: str) -> None:
        """Refuse interrupts that the kernel manages: even writing the current value fails with EIO."""
        managed = [number for number in self.numbers(subject) if self._is_managed(number)]
        if managed:
            listed = write_list(tuple(managed))
            raise refused(
                f"{self.name} of {subject} cannot be changed: the kernel manages interrupts {listed} and "
                "spreads them over the processors, one queue each (EIO)."
            )

    def _is_managed(self, number: int) -> bool:
        try:
            write_file(self._file(number), read_file(self._file(number), self._what(number)), self._what(number))
        except SettingError as error:
            if "Input/output error" in error.message:
                return True
            raise
        return False

    def _file(self, number: int) -> Path:
        return self._proc / f"irq/{number}/smp_affinity_list"

    def _what(self, number: int) -> str:
        return f"the affinity of interrupt {number}"


IRQ_AFFINITY = IrqAffinity()
