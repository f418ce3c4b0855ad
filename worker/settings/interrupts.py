"""Which processors handle the interrupts of a device's controller (Documentation/core-api/irq/irq-affinity.rst).

    cpu3      all of them on processor 3
    node1     round robin over the processors of NUMA node 1
    local     round robin over the processors of the controller's node
    spread    round robin over all processors
    all       any processor; the interrupt controller chooses

The kernel manages interrupts that belong to one queue each (most of NVMe, newer HBAs) and
rejects any other affinity with EIO; the error says so. irqbalance would move interrupts
within seconds, so the setting is refused while irqbalance runs.
"""

import re
from pathlib import Path

from worker.kernel import pci
from worker.kernel.sysfs import SYS, text
from worker.settings import cpu_files
from worker.settings.base import Setting, SettingError, SettingScope, read_file, refused, write_file
from worker.settings.irqbalance import IRQBALANCE

PROC = Path("/proc")
_FORM = re.compile(r"^(cpu[0-9]{1,4}|node[0-9]{1,3}|local|spread|all)\Z")


class IrqAffinity(Setting):
    name = "irq_affinity"
    scope = SettingScope.CONTROLLER
    by_name_only = True

    def __init__(self, sys: Path = SYS, proc: Path = PROC) -> None:
        self._sys = sys
        self._proc = proc

    def describe(self) -> str:
        return "processors that handle the controller's interrupts: cpu<n>, node<n>, local, spread, all"

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
        found = dict(pair.split(":", 1) for pair in observed.split())
        return {n: cpu_files.parse_list(found.get(str(n), "")) for n in wanted} == {
            n: cpu_files.parse_list(listed) for n, listed in wanted.items()
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
            return dict.fromkeys(numbers, cpu_files.write_list(chosen))
        return {number: str(chosen[place % len(chosen)]) for place, number in enumerate(numbers)}

    def _chosen(self, subject: str, value: str) -> tuple[int, ...]:
        online = cpu_files.online(self._sys)
        if value.startswith("cpu"):
            return tuple(cpu for cpu in online if cpu == int(value[3:]))
        if value in ("spread", "all"):
            return online
        node = value.removeprefix("node")
        if value == "local":
            node = text(self._sys / "bus/pci/devices" / subject / "numa_node")
            node = "0" if node == "-1" else node  # a host with a single node reports no node
        return tuple(cpu for cpu in cpu_files.of_node(node, self._sys) if cpu in online)

    def _refuse_managed(self, subject: str) -> None:
        """Refuse interrupts that the kernel manages: even writing the current value fails with EIO."""
        managed = [number for number in self.numbers(subject) if self._is_managed(number)]
        if managed:
            listed = cpu_files.write_list(tuple(managed))
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
