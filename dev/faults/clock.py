"""Clocks that jump: a library preloaded into the processes of one machine shifts what they are told.

The machine's own clock cannot be set for one namespace, and setting it would move everybody else's. So the
shift is made where programs ask (clock_gettime, gettimeofday, time of libc), outside the product, for a host's
worker or for web tier, tasks, beat and PostgreSQL together. fio gets no such library: it is started with a
clean environment.
"""

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
VARIABLE = "SWEETSPOT_TORTURE_CLOCK"


def compiler() -> str:
    """The C compiler, "" where there is none: then clocks cannot jump here."""
    return shutil.which("cc") or shutil.which("gcc") or ""


def build(folder: Path) -> Path:
    library = folder / "clock.so"
    subprocess.run([compiler(), "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    library.chmod(0o755)
    return library


class Clock:
    """The clock of one machine."""

    def __init__(self, file: Path, library: Path | None) -> None:
        self._file = file
        self._library = library
        self.jump(0.0)
        file.chmod(0o644)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), VARIABLE: str(self._file)} if self._library else {}

    def jump(self, ahead_s: float) -> None:
        """Be so far ahead of the machine's clock (behind where negative), from now on and at once."""
        with self._file.open("r+b" if self._file.exists() else "w+b") as file:
            file.write(round(ahead_s * 1e9).to_bytes(8, "little", signed=True))
