"""The I/O scheduler. The file shows all of them with the one in use in brackets: `none [mq-deadline] kyber`."""

from worker.inventory.devices import parse_choice
from worker.settings.base import SettingError
from worker.settings.queue_file import QueueFile


class Scheduler(QueueFile):
    def read(self, device: str) -> str:
        return parse_choice(super().read(device))[0]

    def choices(self, device: str) -> tuple[str, ...]:
        try:
            return parse_choice(super().read(device))[1]
        except SettingError:
            return ()

    def apply(self, device: str, value: str) -> None:
        """Only what the kernel lists now: a name beyond it would make the kernel load a module."""
        listed = self.choices(device)
        if value not in listed:
            raise SettingError(
                "setting_refused",
                f"scheduler of {device} cannot be {value!r}; there is {', '.join(listed) or 'none to choose'}.",
            )
        self._write(device, value)

    def verify(self, asked: str, observed: str) -> bool:
        return asked == observed


# Changing it gives the queue a new set of requests and switches write-back throttling: both start at their defaults.
SCHEDULER = Scheduler("scheduler", "I/O scheduler", rank=0, disturbs=("nr_requests", "wbt_lat_usec"))
