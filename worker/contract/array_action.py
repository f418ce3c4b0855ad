"""Workload of the array action engine: the kernel checks or rebuilds the md array of a layout."""

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from worker.contract.base import Workload


class ArrayAction(StrEnum):
    CHECK = "check"  # reads all members and compares copies or parity
    REBUILD = "rebuild"  # the last member is failed, removed, erased and added again


class ArrayActionWorkload(Workload, tag="array_action", frozen=True, kw_only=True):
    """Ends when the action is complete, or after `runtime_s`."""

    needs_array: ClassVar[bool] = True
    action: ArrayAction
    prefill: bool = False
    runtime_s: Annotated[int, Meta(ge=1, le=30 * 86400)] = 60

    @property
    def direct(self) -> bool:
        """md moves the data past the page cache."""
        return True

    @property
    def writes(self) -> bool:
        return self.replaces_member

    @property
    def reads(self) -> bool:
        """It reads no file that must be written first."""
        return False

    @property
    def uniform(self) -> bool:
        """Its speed depends on the other streams."""
        return False

    @property
    def replaces_member(self) -> bool:
        return self.action is ArrayAction.REBUILD

    @property
    def words(self) -> str:
        return f"array {self.action}"

    @property
    def write_share(self) -> float:
        return 1.0 if self.writes else 0.0

    @property
    def time_s(self) -> int:
        return self.runtime_s

    @property
    def largest_io_bytes(self) -> int:
        return 512

    @property
    def features(self) -> tuple[str, ...]:
        return (self.action,)
