"""Settings of md arrays (kernel: Documentation/admin-guide/md.rst)."""

from worker.settings.base import QueueFile

_SYSTEM = "system"


class SyncSpeed(QueueFile):
    """The file shows `1000 (system)` or `5000 (local)`; writing `system` returns to the host's limit."""

    def read(self, subject: str) -> str:
        number, _, origin = super().read(subject).partition(" ")
        return _SYSTEM if origin == f"({_SYSTEM})" else number

    def _refuse_malformed(self, value: str) -> None:
        if value != _SYSTEM:
            super()._refuse_malformed(value)

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        return asked == observed == _SYSTEM or super().verify(subject, asked, observed)


STRIPE_CACHE_SIZE = QueueFile(
    "md.stripe_cache_size",
    "size of the stripe cache of RAID 4, 5 and 6, in pages per drive",
    file="md/stripe_cache_size",
    stacked=True,
)
SYNC_SPEED_MIN = SyncSpeed(
    "md.sync_speed_min",
    "minimum speed of rebuild and check, KiB/s, or `system`",
    file="md/sync_speed_min",
    stacked=True,
)
SYNC_SPEED_MAX = SyncSpeed(
    "md.sync_speed_max",
    "maximum speed of rebuild and check, KiB/s, or `system`",
    file="md/sync_speed_max",
    stacked=True,
)
