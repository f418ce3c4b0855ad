"""Preparation steps: what the worker does to the targets of a trial before it measures them."""

from typing import Annotated

from msgspec import Meta

from worker.contract.base import Message
from worker.contract.workload import BlockBytes

MAX_STEPS = 20
MAX_TIMES = 100


class _Step(Message, tag_field="step", frozen=True, kw_only=True):
    """Base class of the steps."""


class WriteStep(_Step, tag="write", frozen=True, kw_only=True):
    """Write the used part of each target: the workload's size or files, else the whole device or file."""

    random: bool = False  # offsets are drawn independently, as in a measurement
    block_bytes: BlockBytes
    times: Annotated[int, Meta(ge=1, le=MAX_TIMES)] = 1  # the size of the used part is written so many times
    amount_bytes: Annotated[int, Meta(ge=512, le=2**60)] | None = None  # of each target; replaces `times`


class FlushStep(_Step, tag="flush", frozen=True, kw_only=True):
    """Write the kernel's and the drive's volatile caches of each target to the medium."""


class PauseStep(_Step, tag="pause", frozen=True, kw_only=True):
    """Wait without I/O."""

    seconds: Annotated[int, Meta(ge=1, le=86400)]


Step = WriteStep | FlushStep | PauseStep
