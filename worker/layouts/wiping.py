"""Erase the signatures on a device, through a descriptor that the worker holds exclusively.

wipefs lists the signatures; it could erase them only through a descriptor of its own, and with --force it would not
check whether the device is in use.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from worker.guard import GuardRefused, open_when_free
from worker.layouts import steps
from worker.layouts.steps import LayoutFailed
from worker.recipes.layouts import Step, list_signatures

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
        found = _listed(step, state)
        if not found:
            with suppress(OSError):  # not a device with partitions
                fcntl.ioctl(fd, BLKRRPART)
            return
        for signature in found:
            _erase(path, fd, signature)
        os.fsync(fd)
    raise LayoutFailed("layout_refused", f"{path} still has signatures after {MAX_ROUNDS} rounds: {found}.")


def _listed(step: Step, state: Path) -> tuple[_Signature, ...]:
    said = steps.run(step, state=state)
    try:
        return msgspec.json.decode(said, type=_Listing, strict=False).signatures if said.strip() else ()
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise LayoutFailed("layout_refused", f"{step.line}: unknown output {said[:500]!r}.") from error


def _erase(path: str, fd: int, signature: _Signature) -> None:
    try:
        os.pwrite(fd, bytes(signature.length), int(signature.offset, 16))
    except OSError as error:
        words = f"The signature {signature.type} of {path} could not be erased: {error.strerror}."
        raise LayoutFailed("layout_refused", words) from error
