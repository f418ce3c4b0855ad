"""The deepest idle state that processors may enter. Deeper states add latency to every completion.

Kernel: Documentation/admin-guide/pm/cpuidle.rst. The value is the number of the deepest state that
is allowed: 0 leaves only polling. The captured state lists the disabled states of each processor.
"""

from pathlib import Path

from worker.inventory.sysfs import SYS
from worker.settings import cpus
from worker.settings.base import Setting, SettingScope, refused
from worker.settings.files import read_file, write_file


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
        return cpus.join(found)

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
        for cpu, digits in cpus.split(state, tuple(files)).items():
            for file, digit in zip(files.get(cpu, []), digits, strict=False):
                if read_file(file, self.name) != digit:
                    write_file(file, digit, f"{self.name} of CPU {cpu}")

    def missing(self, subject: str) -> str:
        return f"This host has no {self.name}: its kernel has no cpuidle states."

    def _count(self) -> int:
        return min((len(files) for files in self._files().values()), default=0)

    def _files(self) -> dict[int, list[Path]]:
        directory = self._sys / "devices/system/cpu"
        states = {cpu: sorted((directory / f"cpu{cpu}/cpuidle").glob("state[0-9]")) for cpu in cpus.online(self._sys)}
        return {cpu: [state / "disable" for state in each] for cpu, each in states.items() if each}


DEEPEST_IDLE_STATE = DeepestIdleState()
