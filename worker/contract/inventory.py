"""Facts about a host, as its worker found them. Unknown is None or "", never a guess."""

from typing import Annotated

from msgspec import Meta

from worker.contract.base import Count, Id, Message, Name, Path, Text
from worker.contract.workload import TargetKind

Label = Annotated[str, Meta(max_length=200)]


class Cpu(Message, frozen=True, kw_only=True):
    model: Label
    sockets: int
    cores: int
    threads: int
    governor: Label = ""


class Kernel(Message, frozen=True, kw_only=True):
    release: Label
    command_line: Text
    boot_id: Label


class Holder(Message, frozen=True, kw_only=True):
    """What keeps a block device busy: a mount, swap, or a device built on top of it."""

    kind: Label  # mount | swap | holder | open
    detail: Text


class BlockDevice(Message, frozen=True, kw_only=True):
    name: Label  # kernel name, e.g. nvme0n1
    path: Path  # e.g. /dev/nvme0n1
    kind: Label  # disk | partition | loop | raid | dm …
    major_minor: Label
    stable_id: Name
    parents: tuple[Label, ...] = ()  # kernel names of what it lies on
    model: Label = ""
    serial: Label = ""
    firmware: Label = ""
    transport: Label = ""  # nvme | sas | sata | virtio | loop …
    size_bytes: Count = 0
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    rotational: bool | None = None
    read_only: bool = False
    scheduler: Label = ""
    schedulers: tuple[Label, ...] = ()
    backing_file: Label = ""  # loop devices
    signature: Label = ""  # file system or partition table found on it
    holders: tuple[Holder, ...] = ()


class Inventory(Message, frozen=True, kw_only=True):
    hostname: Label
    distribution: Label
    hypervisor: Label
    cpu: Cpu
    memory_bytes: Count
    kernel: Kernel
    block_devices: tuple[BlockDevice, ...]


class PolicyTarget(Message, frozen=True, kw_only=True):
    """A line of the host's own policy file, as the worker understood it."""

    id: Id  # short name given in the policy file
    kind: TargetKind
    path: Path
    stable_id: Name
    serial: Annotated[str, Meta(max_length=100)] = ""
    destroy: bool = False  # a block device's content may be overwritten
    settings: tuple[Label, ...] = ()  # names of settings that may be changed; "*" for all
    present: bool = False  # it is there now and is what the policy says
    problem: Text = ""  # why not, in words
    size_bytes: Count = 0  # of the device; free space for a directory
    device: Label = ""  # kernel name of the block device it is or lies on, "" if none
    model: Label = ""
    firmware: Label = ""


class Capabilities(Message, frozen=True, kw_only=True):
    """What this host can run; the server offers only this."""

    fio_version: Label  # "" if fio is missing
    engines: tuple[Label, ...]  # ioengines that work here
    uring: tuple[Label, ...]  # io_uring options that kernel and fio support (hipri also needs the target's)
    settings: tuple[Label, ...]  # names of settings this worker knows
    as_root: bool
    isolation: Label  # cgroup2 | cgroup1 | process tree: how fio is kept together
