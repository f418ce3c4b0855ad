"""Parts of building and taking down layouts: run a command, tell what a device holds, erase its signatures.

A command does not outlive the worker.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from worker.contract.base import Failed
from worker.guard.lease import open_when_free
from worker.guard.refusal import GuardRefused
from worker.journal import LayoutRecord
from worker.process.run import ToolError, ToolMissing, ask, find
from worker.recipes.layouts.commands import Names, Step, list_signatures

LIMIT_S = 12 * 3600.0  # mkfs on a large array of slow drives can take hours
UDEV_LIMIT_S = 10.0
_END = 500  # characters kept of the start and of the end of a program's output


class LayoutFailed(Failed):
    """A layout could not be built or taken down. The message has the command and its output."""


class Built(msgspec.Struct, frozen=True):
    """A built layout. Trials use the directory `mount_point`, or `device` if the layout is raw."""

    record: LayoutRecord
    device: str  # device node without links; for btrfs on several drives the first one
    mount_point: str  # "" for a raw layout
    members: tuple[str, ...]  # kernel names of the drives, or of a controller's virtual drives


def run(
    step: Step, *, state: Path, drives: tuple[str, ...] = (), stop_if_asked: Callable[[], None] = lambda: None
) -> str:
    """The command's output. `drives`: stable ids, quarantined if it cannot be killed.

    `stop_if_asked` is called several times per second; if it raises, the command is killed.

    Raises LayoutFailed layout_tool_missing or layout_refused, and what `stop_if_asked` raises.
    """
    try:
        output = ask(
            *step.argv, limit_s=LIMIT_S, state=state, stdin_text=step.stdin, drives=drives,
            on_poll=lambda _output: stop_if_asked(),
        )  # fmt: skip
    except ToolMissing as error:
        raise LayoutFailed("layout_tool_missing", f"{error} It is needed to {step.words}.") from error
    except ToolError as error:
        raise LayoutFailed("layout_refused", f"{step.words}: `{step.line}`: {error}") from error
    if output.exit_code != 0:
        words = _shortened(output.err.strip() or output.out.strip())
        raise LayoutFailed(
            "layout_refused", f"{step.words}: `{step.line}` ended with status {output.exit_code}: {words}"
        )
    return output.out


def _shortened(words: str) -> str:
    """Keep both ends: mkfs.xfs prints the error first and then all its options, other programs print it last."""
    return words if len(words) <= 2 * _END else f"{words[:_END]}\n…\n{words[-_END:]}"


def wait_for_udev(*, state: Path) -> None:
    """Wait until udev has processed the change. Does nothing without udev."""
    if find(("udevadm",)) and Path("/run/udev/control").exists():
        run(Step("wait for udev", ("udevadm", "settle", f"--timeout={UDEV_LIMIT_S:.0f}")), state=state)


def await_node(path: str) -> str:
    """Wait for the node of a new device; return its real path. Raises LayoutFailed if it does not appear."""
    until = time.monotonic() + UDEV_LIMIT_S
    while not Path(path).exists():
        if time.monotonic() > until:
            raise LayoutFailed("layout_refused", f"{path} was created, but its device node did not appear.")
        time.sleep(0.05)
    return os.path.realpath(path)


# The content of a device, and whether it belongs to a layout of the worker.

NOTHING_FOUND = 2  # blkid's exit status
READ_LIMIT_S = 60.0  # a busy drive may take long to answer
FILE_SYSTEMS = ("xfs", "ext4", "btrfs", "jfs", "f2fs")


class Content(msgspec.Struct, frozen=True):
    """The content of a device according to blkid(8); "" for nothing."""

    kind: str = ""  # a file system, linux_raid_member, LVM2_member …
    label: str = ""
    table: str = ""  # kind of partition table
    table_id: str = ""

    @property
    def blank(self) -> bool:
        return not self.kind and not self.table

    def __str__(self) -> str:
        name = self.kind or f"a partition table ({self.table})"
        return f"{name} {self.label}".strip()


def read_content(path: str) -> Content:
    """Raises LayoutFailed if blkid fails."""
    try:
        output = ask("blkid", "--probe", "--output", "export", path, limit_s=READ_LIMIT_S)
    except ToolError as error:
        raise LayoutFailed("layout_tool_missing", str(error)) from error
    if output.exit_code == NOTHING_FOUND:
        return Content()
    if output.exit_code != 0:
        raise LayoutFailed("layout_foreign", f"The content of {path} is unknown: blkid ended with {output.exit_code}.")
    tags = dict(line.partition("=")[::2] for line in output.out.splitlines())
    return Content(tags.get("TYPE", ""), tags.get("LABEL", ""), tags.get("PTTYPE", ""), tags.get("PTUUID", "").lower())


def belongs_to_layout(content: Content, names: Names, path: str) -> bool:
    """Also true for a blank device, because a killed worker may not have written it yet."""
    if content.kind == "linux_raid_member":
        return content.label.rpartition(":")[2].startswith(f"sweetspot-{names.key}-")
    if content.kind == "LVM2_member":
        return _group_of(path) in ("", names.group)
    if content.kind:
        return content.kind in FILE_SYSTEMS and content.label == names.label
    return not content.table or content.table_id == names.table_id


def _group_of(path: str) -> str:
    """The volume group of a physical volume; "" if it is in none."""
    try:
        output = ask("pvs", "--noheadings", "--options", "vg_name", os.path.realpath(path))
    except ToolError as error:
        raise LayoutFailed("layout_tool_missing", str(error)) from error
    if output.exit_code != 0:
        raise LayoutFailed("layout_foreign", f"The volume group of {path} could not be read: {output.err.strip()}")
    return output.out.strip()


# Erase the signatures on a device, through a descriptor that the worker holds exclusively.
#
# wipefs lists the signatures; it could erase them only through a descriptor of its own, and with --force it would not
# check whether the device is in use.

BLKRRPART = 0x125F
MAX_ROUNDS = 20  # an erased signature may uncover another one, such as the second copy of a superblock


class _Signature(msgspec.Struct, frozen=True):
    offset: str  # hexadecimal
    length: int
    type: str


class _Listing(msgspec.Struct, frozen=True):
    signatures: tuple[_Signature, ...] = ()


@contextmanager
def held_exclusively(path: str) -> Iterator[int]:
    """Hold a device that no lease covers: a virtual drive, array or volume, or a drive whose layout is taken down.

    Raises LayoutFailed layout_held if it is still busy after the guard's time limit, or a loop device uses it.
    """
    try:
        fd = open_when_free(path, os.O_RDWR)
    except GuardRefused as error:
        raise LayoutFailed("layout_held", f"{error.message} It was not changed.") from error
    try:
        yield fd
    finally:
        os.close(fd)


def wipe(path: str, fd: int, *, state: Path) -> None:
    """Erase all signatures, then make the kernel forget the partitions. `fd`: the device, held exclusively.

    Raises LayoutFailed.
    """
    step = list_signatures(path)
    for _ in range(MAX_ROUNDS):
        listed = _listed(step, state)
        if not listed:
            with suppress(OSError):  # not a device with partitions
                fcntl.ioctl(fd, BLKRRPART)
            return
        for signature in listed:
            _erase(path, fd, signature)
        os.fsync(fd)
    raise LayoutFailed("layout_refused", f"{path} still has signatures after {MAX_ROUNDS} rounds: {listed}.")


def _listed(step: Step, state: Path) -> tuple[_Signature, ...]:
    output = run(step, state=state)
    try:
        return msgspec.json.decode(output, type=_Listing, strict=False).signatures if output.strip() else ()
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise LayoutFailed("layout_refused", f"{step.line}: unknown output {output[:500]!r}.") from error


def _erase(path: str, fd: int, signature: _Signature) -> None:
    try:
        os.pwrite(fd, bytes(signature.length), int(signature.offset, 16))
    except OSError as error:
        words = f"The signature {signature.type} of {path} could not be erased: {error.strerror}."
        raise LayoutFailed("layout_refused", words) from error
