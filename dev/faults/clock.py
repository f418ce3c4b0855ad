"""Shifted clocks: a preloaded library shifts the time that libc returns to the processes of one machine.

The kernel has no clock namespace for real time, and setting the clock would affect every process. The library therefore
shifts the results of clock_gettime, gettimeofday and time: for a host's worker, or for web tier, tasks, beat and
PostgreSQL together. fio starts with a clean environment and without the library.
"""

import shutil
import subprocess
from pathlib import Path

from dev.console import ToolError

SOURCE = Path(__file__).with_name("clock.c")
VARIABLE = "SWEETSPOT_SHIFTED_CLOCK"


def build(folder: Path) -> Path:
    """The compiled library. Raises ToolError without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise ToolError("make faults shifts clocks with a C library, which requires a C compiler: apt-get install gcc")
    library = folder / "clock.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    library.chmod(0o755)
    return library


class Clock:
    """The clock of one machine."""

    def __init__(self, file: Path, library: Path) -> None:
        self._file = file
        self._library = library
        self.shift(0.0)
        file.chmod(0o644)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), VARIABLE: str(self._file)}

    def shift(self, ahead_s: float) -> None:
        """Set the clock ahead of the machine's clock (behind if negative), with immediate effect."""
        with self._file.open("r+b" if self._file.exists() else "w+b") as file:
            file.write(round(ahead_s * 1e9).to_bytes(8, "little", signed=True))
