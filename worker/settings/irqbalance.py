"""irqbalance, the daemon that moves interrupts between processors: on or off, through systemd.

Stopping the service does not disable it, so it starts again when the host restarts.
"""

import time
from pathlib import Path

from worker.process.run import ToolError, ToolOutput, ask
from worker.settings.base import Setting, SettingError, SettingScope, refused

_UNIT = "irqbalance.service"
_SWITCH_LIMIT_S = 3.0
_WORDS = {"on": "start", "off": "stop"}


class IrqBalance(Setting):
    name = "irqbalance"
    scope = SettingScope.HOST
    rank = 0

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def describe(self) -> str:
        return "the daemon that moves interrupts between processors: on or off"

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
        said = self._systemctl(_WORDS[value], _UNIT)
        if said.exit_code:
            raise refused(f"irqbalance could not be switched {value}: {said.err.strip() or said.out.strip()}")
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
