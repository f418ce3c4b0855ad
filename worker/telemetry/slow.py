"""Sensors that are slow or disturb I/O, read every few seconds in a separate thread.

The worker queries the temperature of a drive once per `EVERY_S`, because the query competes with
the I/O. A drive that hangs blocks only this thread. IPMI reads the power from the baseboard
management controller over a slow bus: `ipmitool dcmi power reading`, parsed according to its
documentation; not tested on real hardware. Each value appears in one sample; other samples have none.
"""

import logging
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from worker.contract.items import Sensor, SensorKind
from worker.inventory.sysfs import SYS
from worker.process import ToolError, ask
from worker.telemetry.temperatures import drive_inputs

log = logging.getLogger(__name__)

EVERY_S = 10.0
IPMI_LIMIT_S = 5.0
DEV = Path("/dev")
_NODES = ("ipmi0", "ipmi/0", "ipmidev/0")
_READING = re.compile(r"^\s*Instantaneous power reading:\s+([0-9]+) Watts", re.MULTILINE)
_ACTIVE = re.compile(r"^\s*Power reading state is:\s+activated", re.MULTILINE)

Ask = Callable[[], float | None]


class SlowSensors:
    def __init__(self, devices: Sequence[str], sys: Path = SYS, dev: Path = DEV) -> None:
        asked: dict[Sensor, Ask] = {
            Sensor(kind=SensorKind.TEMPERATURE, name=name): way for name, way in drive_inputs(devices, sys).items()
        }
        if any((dev / node).exists() for node in _NODES):
            asked[Sensor(kind=SensorKind.POWER, name="server (IPMI)")] = server_watts
        self._asked = asked
        self.sensors = tuple(asked)
        self._fresh: dict[Sensor, float | None] = {}
        self._closed = threading.Event()
        if asked:
            threading.Thread(target=self._run, name="slow sensors", daemon=True).start()

    def restart(self) -> None:
        """Nothing to do: the values are not counters."""

    def read(self) -> list[float | None]:
        return [self._fresh.pop(sensor, None) for sensor in self.sensors]

    def close(self) -> None:
        """Returns at once, because a sensor may never answer."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            for sensor, way in self._asked.items():
                if not self._closed.is_set():
                    self._fresh[sensor] = way()
            self._closed.wait(EVERY_S)


def server_watts() -> float | None:
    """Power of the whole server in watts; None if the management controller does not report it."""
    try:
        said = ask("ipmitool", "dcmi", "power", "reading", limit_s=IPMI_LIMIT_S)
    except ToolError as error:
        log.debug("IPMI power cannot be read: %s", error)
        return None
    return read_dcmi(said.out)


def read_dcmi(text: str) -> float | None:
    """Parse the output of `ipmitool dcmi power reading`."""
    found = _READING.search(text)
    return float(found.group(1)) if found and _ACTIVE.search(text) else None
