"""The I/O scheduler. The file shows all of them with the one in use in brackets: `none [mq-deadline] kyber`.

A newly selected scheduler starts with its defaults. The captured state is therefore the name with
all tunables: `mq-deadline fifo_batch=16 read_expire=100`.
"""

from worker.inventory.devices import parse_choice
from worker.settings.base import QueueFile, SettingError, read_file, refused, write_file

# Modules on many systems, including Debian.
_HINTS = {
    name: f" If it is a module, load it on the host: `modprobe {module}`."
    for name, module in (("bfq", "bfq"), ("kyber", "kyber-iosched"), ("mq-deadline", "mq-deadline"))
}


class Scheduler(QueueFile):
    def read(self, subject: str) -> str:
        return parse_choice(super().read(subject))[0]

    def choices(self, subject: str) -> tuple[str, ...]:
        try:
            return parse_choice(super().read(subject))[1]
        except SettingError:
            return ()

    def apply(self, subject: str, value: str) -> None:
        """Accept only schedulers that the kernel lists, because any other name would make it load a module."""
        listed = self.choices(subject)
        if value not in listed:
            raise refused(
                f"scheduler of {subject} cannot be {value!r}; possible values: {', '.join(listed) or 'none'}."
                f"{_HINTS.get(value, '')}"
            )
        self._write(subject, value)

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        return asked == observed

    def capture(self, subject: str) -> str:
        tunables = (f"{name}={value}" for name, value in self._tunables(subject).items())
        return " ".join((self.read(subject), *tunables))

    def same(self, one: str, other: str) -> bool:
        """Compare by name: tunables are captured and restored as separate settings."""
        return self.shown(one) == self.shown(other)

    def shown(self, state: str) -> str:
        return state.partition(" ")[0]

    def restore(self, subject: str, state: str) -> None:
        name, *pairs = state.split()
        self._write(subject, name)
        now = self._tunables(subject)
        for pair in pairs:
            tunable, _, value = pair.partition("=")
            if now.get(tunable) != value:
                self._write_tunable(subject, tunable, value)

    def _write_tunable(self, subject: str, tunable: str, value: str) -> None:
        path, what = self.path(subject).parent / "iosched" / tunable, f"{tunable} of {subject}'s scheduler"
        write_file(path, value, what)
        if read_file(path, what) != value:
            raise SettingError("setting_clamped", f"{what} could not be restored to {value}.")

    def _tunables(self, subject: str) -> dict[str, str]:
        directory = self.path(subject).parent / "iosched"
        if not directory.is_dir():
            return {}
        return {path.name: read_file(path, path.name) for path in sorted(directory.iterdir()) if path.is_file()}


# A change resets the number of requests and write-back throttling to their defaults.
SCHEDULER = Scheduler("scheduler", "I/O scheduler", rank=0, disturbs=("nr_requests", "wbt_lat_usec"))
