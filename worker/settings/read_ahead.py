"""Read-ahead, in KiB as sysfs counts it and in sectors of 512 bytes as `blockdev --setra` counts: one state."""

from worker.settings.base import QueueFile, refused

READ_AHEAD = QueueFile("read_ahead_kb", "read-ahead of buffered reads, KiB", stacked=True)
SECTORS_PER_KIB = 2


class ReadAheadSectors(QueueFile):
    @property
    def key(self) -> str:
        return READ_AHEAD.name

    def read(self, subject: str) -> str:
        return str(int(READ_AHEAD.read(subject)) * SECTORS_PER_KIB)

    def apply(self, subject: str, value: str) -> None:
        self._refuse_malformed(value)
        if int(value) % SECTORS_PER_KIB:
            raise refused(f"{self.name} cannot be {value}: the kernel stores whole KiB, so it must be even.")
        self._write(subject, str(int(value) // SECTORS_PER_KIB))

    def capture(self, subject: str) -> str:
        return READ_AHEAD.capture(subject)


READ_AHEAD_SECTORS = ReadAheadSectors(
    "read_ahead_sectors",
    "read-ahead in sectors of 512 bytes, as blockdev --setra counts",
    file="queue/read_ahead_kb",
    stacked=True,
)
