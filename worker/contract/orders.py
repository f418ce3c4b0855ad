"""Orders of the server to a host: data, never commands. Each order is signed as a whole (see `signing`)."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from worker.contract.base import (
    CONTRACT_VERSION,
    MAX_ORDER_BYTES,
    ContractError,
    Id,
    Message,
    Name,
    Session,
    as_bytes,
    check_version,
)
from worker.contract.inventory import PurgeMethod
from worker.contract.layouts import Layout
from worker.contract.workload import MAX_STEPS, Step, Stream, TargetRef

# The one Celery task of a host's queue; its only argument is an Envelope as JSON text.
ORDER_TASK = "sweetspot.order"


def queue_name(host_id: str) -> str:
    """The host's queue; its Redis user can access no other."""
    return f"host.{host_id}"


class SettingRequest(Message, frozen=True, kw_only=True):
    """Set one setting to `value`: of the block device under a stream's target, of its controller, or of the host."""

    name: Name
    value: Annotated[str, Meta(max_length=200)]
    stream: Annotated[int, Meta(ge=0, le=63)] = 0


class LayoutRequest(Message, frozen=True, kw_only=True):
    """Build a layout from drives of a pool before the streams run. Trials of the run with the same request share it.

    The target of its streams is then the pool. Its kind is that of the built layout (a block device, or a directory
    with a file system), and its path is ignored.
    """

    pool: Id  # the entry of the host's policy file, and the target of its streams
    layout: Layout
    drives: Annotated[tuple[TargetRef, ...], Meta(min_length=1, max_length=64)]  # in order


class Arming(Message, frozen=True, kw_only=True):
    """Serials typed by a person: this order may overwrite these drives."""

    serials: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=64)]
    by: Name
    until: float  # Unix time, s; a run must start before this time
    run_began: float | None = None  # Unix time, s; a run that started in time may continue


class Order(Message, tag_field="purpose", frozen=True, kw_only=True):
    """Common fields. All reports about the order have the id `attempt`."""

    host: Id
    attempt: Id
    issued_at: float  # Unix time, s
    expires_at: float  # the worker does not start the order after this time
    session: Session = ""  # which may carry it out: another worker with the same identity drops it; "": any
    version: int = CONTRACT_VERSION


class TrialOrder(Order, tag="trial", frozen=True, kw_only=True):
    run: Id
    trial: Id
    streams: Annotated[tuple[Stream, ...], Meta(min_length=1, max_length=64)]
    settings: Annotated[tuple[SettingRequest, ...], Meta(max_length=200)] = ()
    layouts: Annotated[tuple[LayoutRequest, ...], Meta(max_length=64)] = ()  # none, or one for each target
    drop_caches: bool = False
    purge: PurgeMethod | None = (
        None  # of all block devices under the streams or drives of the layouts, before everything else
    )
    # In order, after the prefill and before caches are dropped; each step on one target after another.
    steps: Annotated[tuple[Step, ...], Meta(max_length=MAX_STEPS)] = ()
    arming: Arming | None = None
    # Set if the trial runs on several hosts: the streams begin at the common start (contract.common_start), for which
    # the worker waits at most this long.
    start_limit_s: Annotated[int, Meta(ge=5, le=40 * 86400)] | None = None
    silence_limit_s: Annotated[int, Meta(ge=5, le=86400)] = 60
    total_limit_s: Annotated[int, Meta(ge=5, le=40 * 86400)] = 3600

    def __post_init__(self) -> None:
        """The worker finds the open target of a stream by its number."""
        if len({stream.number for stream in self.streams}) < len(self.streams):
            raise ValueError("Two streams have the same number.")


class CloseRunOrder(Order, tag="close_run", frozen=True, kw_only=True):
    """Restore all settings that the run changed, and take down all layouts that it built."""

    run: Id


class PurgeOrder(Order, tag="purge", frozen=True, kw_only=True):
    """Purge one drive now."""

    target: TargetRef
    method: PurgeMethod
    arming: Arming


class SettingOperation(StrEnum):
    READ = "read"
    SET = "set"
    RESTORE = "restore"  # the value before it was first set by hand


class SettingOrder(Order, tag="setting", frozen=True, kw_only=True):
    """Read, change or restore one setting now, outside any run."""

    target: TargetRef
    name: Name
    operation: SettingOperation
    value: Annotated[str, Meta(max_length=200)] = ""  # to be set


class InventoryOrder(Order, tag="inventory", frozen=True, kw_only=True):
    """Read the inventory again and send a Hello."""


AnyOrder = TrialOrder | CloseRunOrder | InventoryOrder | PurgeOrder | SettingOrder


class _Head(msgspec.Struct, frozen=True):
    version: int


def decode_order(text: str | bytes) -> AnyOrder:
    """Read an order whose signature has been verified. Raises ContractError."""
    raw = as_bytes(text, "The order")
    if len(raw) > MAX_ORDER_BYTES:
        raise ContractError(f"An order of {len(raw)} bytes is over the limit of {MAX_ORDER_BYTES} bytes.")
    try:
        check_version(msgspec.json.decode(raw, type=_Head).version, "The order")
        order: AnyOrder = msgspec.json.decode(raw, type=AnyOrder)
        return order
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContractError(f"The order could not be read: {error}") from error
