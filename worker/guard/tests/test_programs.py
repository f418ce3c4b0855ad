"""Programs that use a target in other ways than by a descriptor of their main thread."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from worker import guard
from worker.guard import openers
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.guard.tests.refused import refusal
from worker.policy import Policy

pytestmark = rig.needs_root
HEAD = """
import array, ctypes, mmap, os, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def ready():
    print("ready", flush=True)
    time.sleep(60)
"""
# The main thread has ended, so its folder in /proc shows no descriptors and no memory.
ENDED_MAIN_THREAD = """
def work():
    time.sleep(0.3)
    fd = os.open(sys.argv[1], os.O_RDWR)
    ready()
threading.Thread(target=work).start()
libc.pthread_exit(None)
"""
# unshare(CLONE_FILES): a descriptor table of its own.
OWN_TABLE = """
def work():
    assert libc.unshare(0x400) == 0
    fd = os.open(sys.argv[1], os.O_RDWR)
    ready()
threading.Thread(target=work, daemon=True).start()
time.sleep(60)
"""
MAPPING = """
fd = os.open(sys.argv[1], os.O_RDWR)
memory = mmap.mmap(fd, 4096)
libc.close(fd)
libc.syscall(436, 3, 1 << 30, 0)  # close_range: mmap.mmap keeps a copy of the descriptor
ready()
"""
ENDED_MAIN_THREAD_WITH_MAPPING = """
def work():
    time.sleep(0.3)
    fd = os.open(sys.argv[1], os.O_RDWR)
    memory = mmap.mmap(fd, 4096)
    libc.syscall(436, 3, 1 << 30, 0)
    ready()
threading.Thread(target=work).start()
libc.pthread_exit(None)
"""
# io_uring_setup and io_uring_register(IORING_REGISTER_FILES) by their numbers, which all architectures share.
REGISTERED = """
fd = os.open(sys.argv[1], os.O_RDWR)
ring = libc.syscall(425, 8, ctypes.create_string_buffer(120))
if ring < 0 or libc.syscall(427, ring, 2, ctypes.byref(ctypes.c_int(fd)), 1) < 0:
    print("none", flush=True)
os.close(fd)
ready()
"""
IN_A_SOCKET = """
fd = os.open(sys.argv[1], os.O_RDWR)
one, other = socket.socketpair()
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
os.close(fd)
ready()
"""
VISIBLE = {
    "ended main thread": ENDED_MAIN_THREAD,
    "own table": OWN_TABLE,
    "mapping": MAPPING,
    "ended main thread with mapping": ENDED_MAIN_THREAD_WITH_MAPPING,
    "registered": REGISTERED,
}


@contextmanager
def program(text: str, path: str) -> Iterator[int]:
    """A program that uses the path: its process id."""
    with subprocess.Popen([sys.executable, "-c", HEAD + text, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != b"ready\n":
                pytest.skip("this kernel has no io_uring")
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("text", VISIBLE.values(), ids=VISIBLE)
def test_it_refuses_a_drive_that_a_program_uses(allowed: Policy, device: str, file: Path, text: str) -> None:
    for path in (device, str(file)):
        with program(text, path) as process:
            refused = refusal(rig.stream(allowed, writes=True), allowed)
            assert (refused.code, f"(process {process})" in refused.message) == ("guard_held", True)
    stream = rig.stream(allowed, writes=True)
    with guard.admit(stream, allowed, (stream.target.stable_id,)):
        pass


@pytest.mark.parametrize("text", [*VISIBLE.values(), IN_A_SOCKET], ids=[*VISIBLE, "in a socket"])
def test_it_refuses_to_write_a_file_that_anything_has_open(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel's own count, also if nothing in /proc shows it."""
    image = rig.sparse(tmp_path / "vm.img")
    image.chmod(0o600)
    allowed = rig.load(tmp_path, {"id": "vm", "kind": "file", "path": str(image), "destroy": True})
    stream = rig.stream(allowed, writes=True)
    with program(text, str(image)):
        assert refusal(stream, allowed).code == "guard_held"
        monkeypatch.setattr(openers, "openers", lambda *_, **_more: ())
        assert refusal(stream, allowed).code == "guard_held"
    with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
        place.recheck(programs=True)
        with program(text, str(image)), pytest.raises(GuardRefused):
            place.recheck(programs=True)


def test_a_descriptor_that_can_neither_read_nor_write_is_no_use(allowed: Policy, device: str) -> None:
    with program("place = os.open(sys.argv[1], os.O_PATH)\nready()\n", device):
        stream = rig.stream(allowed, writes=True)
        with guard.admit(stream, allowed, (stream.target.stable_id,)) as place:
            place.recheck(programs=True)


def test_it_finds_users_of_a_drive_whatever_bytes_names_contain(allowed: Policy, device: str, tmp_path: Path) -> None:
    """A mount point and a mapped file with names that are not UTF-8 and contain what ends a line in Unicode."""
    odd = os.fsencode(tmp_path) + b"/a\xff\r\x0c\xc2\x85 b"
    text = (
        f"point = {odd!r}\nos.makedirs(point, exist_ok=True)\nassert libc.unshare(0x20000) == 0\n"
        "assert libc.mount(b'none', b'/', None, 0x44000, None) == 0\n"
        "assert libc.mount(b'none', point, b'tmpfs', 0, b'size=64k') == 0\n"
        "file = open(point + b'/x\\r\\x0c', 'w+b')\nfile.truncate(4096)\nmemory = mmap.mmap(file.fileno(), 4096)\n"
    )
    stream = rig.stream(allowed, writes=True)
    with program(f"{text}ready()\n", device), guard.admit(stream, allowed, (stream.target.stable_id,)):
        pass
    with program(f"{text}drive = os.open(sys.argv[1], os.O_RDONLY)\nready()\n", device):
        assert refusal(stream, allowed).code == "guard_held"
    own = "from worker.process.scope import own_cgroups\nfrom worker.kernel import usage\n"
    own += "own_cgroups()\nusage.read_usage()\n"
    subprocess.run([sys.executable, "-c", f"{HEAD}\n{text}{own}"], check=True, capture_output=True, timeout=30)


def test_it_reads_a_descriptor_table_that_threads_share_once(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "for _ in range(50): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nready()\n"
    reads: list[str] = []
    scan = os.scandir

    def counted(path: "str | Path") -> object:
        reads.append(str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", counted)
    wanted = openers.device_identities(Path(device).name)
    with program(text, device) as process:
        for compare, tables in ((openers._share_descriptors, 1), (lambda *_: False, 51)):
            monkeypatch.setattr(openers, "_share_descriptors", compare)
            reads.clear()
            openers.openers(wanted)
            assert (
                len([path for path in reads if path.startswith(f"/proc/{process}/task/") and path.endswith("fd")])
                == tables
            )


def test_it_finds_mappings_without_the_right_to_read_map_files(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = openers._linked

    def without_map_files(link: "Path | os.DirEntry[str]") -> "Iterator[openers.Identity]":
        if isinstance(link, Path) and link.parent.name == "map_files":
            raise PermissionError(1, "Operation not permitted")
        return linked(link)

    monkeypatch.setattr(openers, "_linked", without_map_files)
    with program(MAPPING, device) as process:
        names = openers.openers(openers.device_identities(Path(device).name))
    assert [f"(process {process})" in name for name in names] == [True]


def test_it_finds_a_mapping_whose_other_part_was_unmapped_meanwhile(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked, gone = openers._linked, list[object]()
    wanted = openers.device_identities(Path(device).name)

    def without_one(link: "Path | os.DirEntry[str]") -> "Iterator[openers.Identity]":
        part = isinstance(link, Path) and link.parent.name == "map_files"
        if part and not gone and openers.identity_at(str(link)) in wanted:
            gone.append(link)
            return iter(())
        return linked(link)

    monkeypatch.setattr(openers, "_linked", without_one)
    twice = MAPPING.replace("mmap.mmap(fd, 4096)", "mmap.mmap(fd, 4096), mmap.mmap(fd, 4096)")
    with program(twice, device) as process:
        names = openers.openers(wanted)
    assert [f"(process {process})" in name for name in names] == [True]
    assert len(gone) == 1


def test_it_examines_the_processes_once_for_all_drives_of_a_layout(
    tmp_path: Path, device: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, scans, scan = rig.sparse(tmp_path / "other.img"), [], openers.openers

    def counted(*wanted: Any, **how: Any) -> tuple[str, ...]:
        scans.append(wanted)
        return scan(*wanted, **how)

    with rig.loop(other) as second:
        drives = rig.block(device, file, destroy=True), rig.block(second, other, destroy=True) | {"id": "second"}
        allowed = rig.load(tmp_path, *drives)
        armed = tuple(entry.arming_serial for entry in allowed.targets)
        monkeypatch.setattr(openers, "openers", counted)
        with guard.lease_drives(allowed.targets, allowed, armed):
            assert len(scans) == 1
        with (
            rig.opened_elsewhere(second),
            pytest.raises(GuardRefused, match=f"^{second} is used by"),
            guard.lease_drives(allowed.targets, allowed, armed),
        ):
            pass
