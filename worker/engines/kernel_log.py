"""What the kernel said while a leg ran: warnings and worse, and every line that names the device."""

import contextlib
import os
import re
from types import TracebackType
from typing import Self

WARNING = 4  # syslog level
MAX_LINES = 200
MAX_LINE = 2000


class KernelLog:
    """Reads /dev/kmsg from its present end. Not permitted (dmesg_restrict, container): there are no lines."""

    def __init__(self, device: str) -> None:
        self._names = re.compile(rf"\b{re.escape(device)}\b") if device else None
        self._fd: int | None = None

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def lines(self) -> tuple[str, ...]:
        """The lines since the beginning or the last call."""
        found: list[str] = []
        while self._fd is not None and len(found) < MAX_LINES:
            try:
                record = os.read(self._fd, 8192)
            except BrokenPipeError:
                continue  # overtaken by the ring buffer: the next read goes on with the oldest line there is
            except OSError:
                break
            line = self.wanted(record.decode(errors="replace"))
            found += [line] if line else []
        return tuple(found)

    def wanted(self, record: str) -> str | None:
        """The text of a record `prefix,sequence,microseconds,flags;text`, if it is for us."""
        head, _, text = record.partition(";")
        priority = head.partition(",")[0]
        text = text.partition("\n")[0]
        serious = priority.isdigit() and int(priority) & 7 <= WARNING
        named = self._names is not None and self._names.search(text) is not None
        return text[:MAX_LINE] if serious or named else None
