"""Settings of the host with one file for each processor: frequency governor and energy preference.

Kernel: Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst.
"""

from pathlib import Path

from worker.inventory.sysfs import SYS
from worker.settings import cpus
from worker.settings.base import Setting, SettingError, SettingScope, refused
from worker.settings.files import read_file, write_file


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
        return cpus.join(found)

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
        for cpu, value in cpus.split(state, tuple(paths)).items():
            if cpu in paths and read_file(paths[cpu], self.name) != value:
                write_file(paths[cpu], value, f"{self.name} of CPU {cpu}")

    def missing(self, subject: str) -> str:
        return f"This host has no {self.name}: the kernel does not control CPU frequency (guest, or BIOS)."

    def _paths(self) -> dict[int, Path]:
        directory = self._sys / "devices/system/cpu"
        found = {cpu: directory / f"cpu{cpu}" / "cpufreq" / self._file for cpu in cpus.online(self._sys)}
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
