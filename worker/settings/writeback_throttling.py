"""wbt_lat_usec: the target read latency of write-back throttling, in µs; 0 is off, -1 is the kernel's default."""

import contextlib
import re

from worker.settings.base import QueueFile, SettingError


class WritebackThrottling(QueueFile):
    _form = re.compile(r"-1|[0-9]{1,18}")

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        """After -1 the kernel shows the default that it chose."""
        return observed.isdecimal() if asked == "-1" else super().verify(subject, asked, observed)

    def restore(self, subject: str, state: str) -> None:
        """Write -1 first: after writing a number, the kernel no longer adjusts its default."""
        with contextlib.suppress(SettingError):
            self._write(subject, "-1")
            if self.read(subject) == state:
                return
        self._write(subject, state)


WRITEBACK_THROTTLING = WritebackThrottling("wbt_lat_usec", "target latency of write-back throttling, µs (-1: default)")
