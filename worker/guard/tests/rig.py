"""Real loop devices and policies for the tests of guard, policy and settings."""

import ctypes
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from worker import policy
from worker.contract.workload import FioWorkload, Pattern, Stream, TargetKind, TargetRef
from worker.link.targets import report_targets
from worker.policy import Policy
from worker.settings import SETTING_NAMES
from worker.tests.waiting import until

MIB = 1024 * 1024
FIRST_NUMBER, PROCESSES, LOOPS_PER_PROCESS = 1000, 10_000, 64  # loop devices have 2^20 numbers
LOOP_CTL_REMOVE = 0x4C81  # linux/loop.h
DETACH_LIMIT_S = 10.0
_loops = count()
needs_root = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")]


def run(*command: str, given: str | None = None) -> str:
    """`given`: its standard input."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30, input=given).stdout.strip()


def sparse(path: Path, size: int = 64 * MIB) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


@contextmanager
def loop(file: Path, *options: str) -> Iterator[str]:
    """A loop device on `file`: its /dev path. Gone again at the end.

    Its number is not one that `losetup --find` gives: a test may detach it and attach another file, and no test in
    another process takes the name meanwhile.
    """
    number = next_loop()
    device = f"/dev/loop{number}"
    run("losetup", *options, device, str(file))
    try:
        yield device
    finally:
        remove_loop(number)


def next_loop() -> int:
    """The number of a loop device that no other test uses."""
    return FIRST_NUMBER + os.getpid() % PROCESSES * LOOPS_PER_PROCESS + next(_loops) % LOOPS_PER_PROCESS


def remove_loop(number: int) -> None:
    subprocess.run(["losetup", "--detach", f"/dev/loop{number}"], check=False, capture_output=True, timeout=30)
    with suppress(OSError), Path("/dev/loop-control").open("rb") as control:  # busy: something still has it open
        fcntl.ioctl(control, LOOP_CTL_REMOVE, number)


def detach(device: str) -> None:
    """Detach the file of a loop device. The kernel waits until nobody has the device open, such as another test that
    reads all block devices."""
    run("losetup", "--detach", device)
    backing = Path(f"/sys/block/{Path(device).name}/loop")
    until(lambda: not backing.exists(), DETACH_LIMIT_S, lambda: f"{device} is still open")


def unmount(point: Path | str) -> None:
    """Unmount. It is busy for a moment if another test looks at all mounts or open files."""

    def has_ended() -> bool:
        done = subprocess.run(["umount", str(point)], check=False, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0 or "busy" in done.stderr, done.stderr
        return done.returncode == 0

    until(has_ended, DETACH_LIMIT_S, lambda: f"{point} is still busy")


@contextmanager
def mounted(device: str, point: Path, *, fresh: bool = True) -> Iterator[Path]:
    if fresh:
        run("mkfs.ext4", "-q", "-F", device)
    point.mkdir(exist_ok=True)
    run("mount", device, str(point))
    try:
        yield point
    finally:
        unmount(point)


@contextmanager
def mount_at(point: Path, *arguments: str) -> Iterator[Path]:
    """`mount ARGUMENTS POINT`; unmounted lazily at the end, if it is still mounted."""
    point.mkdir(exist_ok=True)
    run("mount", *arguments, str(point))
    try:
        yield point
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=False, capture_output=True, timeout=30)


def erofs(path: Path, *, is_in_two_files: bool = False) -> Path:
    """The smallest erofs image: an empty root directory. Layout: fs/erofs/erofs_fs.h of the Linux kernel.

    `is_in_two_files`: it needs a further file, which is mounted with the option `device=`.
    """
    block_bits, root = 12, 40  # the root's inode is at 32 times its number
    entries = struct.pack("<QHBBQHBB", root, 24, 2, 0, root, 25, 2, 0) + b"..."
    inode = struct.pack("<HHHHIIIIHHI", 2 << 1, 0, 0o040755, 2, len(entries), 0, 0, 1, 0, 0, 0)
    head = struct.pack("<IIIBBHQQIIII", 0xE0F5E1E2, 0, 0, block_bits, 0, root, 1, 0, 0, 2, 0, 0)
    image = bytearray(2 << block_bits)
    image[1024 : 1024 + len(head)] = head
    if is_in_two_files:
        slot = 1536  # of the further file: a tag, then its blocks and the number that its first block has
        image[1024 + 80 : 1024 + 90] = struct.pack("<IHHH", 8, 0, 1, slot // 128)
        image[slot + 64 : slot + 72] = struct.pack("<II", 1, 2)
    image[root * 32 : root * 32 + len(inode + entries)] = inode + entries
    path.write_bytes(image)
    path.chmod(0o600)
    return path


def mount_without_loop(image: Path | str, point: Path) -> bool:
    """Mount an erofs image as the kernel does without a loop device. False if this kernel cannot."""
    point.mkdir(exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.mount(os.fsencode(image), bytes(point), b"erofs", 1, b"") == 0)


def partition(device: str, *rows: str, label: str = "gpt") -> str:
    """Write a new partition table; each row is one of sfdisk(8)'s. Returns the path of the first partition."""
    rows = rows or ("start=2048, size=65536",)
    run("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--label", label, device, given="\n".join(rows) + "\n")
    run("partx", "--update", device)
    return f"{device}p1"


OPENER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
print("open", flush=True)
time.sleep(float(sys.argv[2]))
"""


@contextmanager
def opened_elsewhere(path: str, seconds: float = 60) -> Iterator[int]:
    """Another process that has the path open without O_EXCL, as QEMU does: its id."""
    with subprocess.Popen([sys.executable, "-c", OPENER, path, str(seconds)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def load(directory: Path, *targets: dict[str, Any], pools: Mapping[str, list[str]] | None = None) -> Policy:
    """A policy with these targets, and pools of them, read from a file as the worker reads it."""
    path = directory / "policy.toml"
    rows = ("\n".join(f"{key} = {_toml(value)}" for key, value in target.items()) for target in targets)
    named = (f"[[pool]]\nid = {_toml(name)}\ndrives = {_toml(drives)}\n" for name, drives in (pools or {}).items())
    path.write_text("".join([*(f"[[target]]\n{row}\n" for row in rows), *named]))
    path.chmod(0o600)
    return policy.load(path, SETTING_NAMES)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else repr(value).replace("'", '"')


def at_offset(stream: Stream, offset: int) -> Stream:
    assert isinstance(stream.workload, FioWorkload)
    work = replace(stream.workload, options=replace(stream.workload.options, offset=offset))
    return replace(stream, workload=work)


def block(device: str, file: Path, **more: Any) -> dict[str, Any]:
    return {"id": "disk", "kind": "block", "path": device, "stable_id": f"loop:{file}", **more}


def stream(allowed: Policy, *, writes: bool = False, target: int = 0, size: int | None = MIB, files: int = 1) -> Stream:
    """A stream at a target of the policy, as the server would order it."""
    entry = report_targets(allowed)[target]
    pattern = Pattern.RANDWRITE if writes else Pattern.RANDREAD
    return Stream(
        number=0,
        target=TargetRef(
            id=entry.id, kind=TargetKind(entry.kind), path=entry.path, stable_id=entry.stable_id, serial=entry.serial
        ),
        workload=FioWorkload(pattern=pattern, size_bytes=size, files=files, runtime_s=1),
    )


@contextmanager
def bound(source: Path, point: Path) -> Iterator[None]:
    """A bind mount of a directory or file over another one."""
    with bound_later() as bind:
        bind(source, point)
        yield


@contextmanager
def bound_later() -> Iterator[Callable[[Path, Path], None]]:
    """A function that binds a directory or file over another one until the end of the context."""
    with ExitStack() as unmounting:

        def bind(source: Path, point: Path) -> None:
            if subprocess.run(["mount", "--bind", str(source), str(point)], check=False).returncode:
                pytest.skip("mounts are not allowed here")
            unmounting.callback(unmount, point)

        yield bind
