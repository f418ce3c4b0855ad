"""Workload of the idle engine: no I/O for a time, to record power and temperature."""

from typing import Annotated, ClassVar

from msgspec import Meta

from worker.contract.base import Workload


class IdleWorkload(Workload, tag="idle", frozen=True, kw_only=True):
    does_io: ClassVar[bool] = False
    prefill: bool = False
    runtime_s: Annotated[int, Meta(ge=1, le=30 * 86400)] = 60

    @property
    def writes(self) -> bool:
        return False

    @property
    def reads(self) -> bool:
        return False

    @property
    def uniform(self) -> bool:
        """There is no speed to judge."""
        return False

    @property
    def words(self) -> str:
        return "idle"

    @property
    def write_share(self) -> float:
        return 0.0

    @property
    def time_s(self) -> int:
        return self.runtime_s

    @property
    def largest_io_bytes(self) -> int:
        return 512
