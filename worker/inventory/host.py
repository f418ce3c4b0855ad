"""The host itself: processor, memory and its modules, kernel, distribution, hypervisor."""

import os
import platform
import shlex
import struct
from collections.abc import Iterator
from pathlib import Path

from worker.contract.base import MAX_LABEL, MAX_TEXT
from worker.contract.inventory import Cpu, Kernel, MemoryModule, NumaNode
from worker.kernel.sysfs import SYS, text
from worker.kernel.usage import PROC

ETC = Path("/etc")
_VENDORS = {
    "QEMU": "qemu", "KVM": "kvm", "VMware": "vmware", "Microsoft Corporation": "hyperv", "Xen": "xen",
    "innotek": "virtualbox", "Amazon EC2": "amazon", "Google": "google", "Bochs": "bochs",
}  # fmt: skip


def read_cpu(sys: Path = SYS, proc: Path = PROC) -> Cpu:
    info = _cpuinfo(proc)
    first = info[0] if info else {}
    nodes = [node for node in (sys / "devices/system/cpu").glob("cpu[0-9]*") if (node / "topology").is_dir()]
    places = [(text(n / "topology/physical_package_id"), text(n / "topology/core_id")) for n in nodes]
    threads = len(nodes) or len(info)
    return Cpu(
        model=(first.get("model name") or first.get("CPU part") or platform.machine())[:MAX_LABEL],
        sockets=len({package for package, _ in places}) or 1,
        cores=len(set(places)) or threads,
        threads=threads,
        governor=_of_all(sys, "scaling_governor"),
        energy_preference=_of_all(sys, "energy_performance_preference"),
        smt={"1": True, "0": False}.get(text(sys / "devices/system/cpu/smt/active")),
        mitigations={
            path.name: state[:MAX_LABEL]
            for path in sorted((sys / "devices/system/cpu/vulnerabilities").glob("*"))
            if (state := text(path))
        },
    )


def _of_all(sys: Path, file: str) -> str:
    """A frequency setting; all values if processors differ; "" without one (most guests)."""
    paths = (sys / "devices/system/cpu").glob(f"cpu[0-9]*/cpufreq/{file}")
    return ",".join(sorted({text(path) for path in paths} - {""}))[:MAX_LABEL]


def numa_nodes(sys: Path) -> tuple[NumaNode, ...]:
    nodes = []
    for at in sorted((sys / "devices/system/node").glob("node[0-9]*"), key=lambda each: int(each.name[4:])):
        rows = (line.split() for line in text(at / "meminfo").splitlines())
        total = next((int(row[3]) * 1024 for row in rows if len(row) > 3 and row[2] == "MemTotal:"), 0)
        nodes.append(NumaNode(number=int(at.name[4:]), cpus=text(at / "cpulist")[:MAX_LABEL], memory_bytes=total))
    return tuple(nodes)


def _cpuinfo(proc: Path) -> list[dict[str, str]]:
    blocks = text(proc / "cpuinfo").split("\n\n")
    pairs = ([line.partition(":") for line in block.splitlines()] for block in blocks)
    return [{key.strip(): value.strip() for key, _, value in block} for block in pairs if block]


def memory_bytes(proc: Path = PROC) -> int:
    for line in text(proc / "meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def read_kernel(proc: Path = PROC) -> Kernel:
    return Kernel(
        release=text(proc / "sys/kernel/osrelease")[:MAX_LABEL],
        command_line=text(proc / "cmdline")[:MAX_TEXT],
        boot_id=text(proc / "sys/kernel/random/boot_id"),
    )


def distribution(etc: Path = ETC) -> str:
    for line in text(etc / "os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return " ".join(shlex.split(line.partition("=")[2]))[:MAX_LABEL]
    return ""


def hypervisor(sys: Path = SYS, proc: Path = PROC) -> str:
    """The hypervisor's name, "unknown" if it has none, "" on bare metal."""
    if kind := text(sys / "hypervisor/type"):
        return kind
    firmware = " ".join(text(sys / "class/dmi/id" / name) for name in ("sys_vendor", "product_name", "bios_vendor"))
    if hypervisor_name := next((word for vendor, word in _VENDORS.items() if vendor in firmware), ""):
        return hypervisor_name
    flags = next(iter(_cpuinfo(proc)), {}).get("flags", "").split()
    return "unknown" if "hypervisor" in flags else ""


def hostname() -> str:
    return os.uname().nodename[:MAX_LABEL]


# Memory modules from the firmware's SMBIOS tables (/sys/firmware/dmi/tables/DMI, readable only by root).
#
# DMTF DSP0134 3.6: a structure consists of type, length, handle, a formatted part, and strings. Each string ends with
# a zero byte, and the list with another one. Type 17 is Memory Device (7.18).

_MEMORY_DEVICE, _END = 17, 127
_UNKNOWN_SIZE, _EXTENDED = 0xFFFF, 0x7FFF
_KINDS = {
    0x12: "DDR", 0x13: "DDR2", 0x18: "DDR3", 0x1A: "DDR4", 0x1B: "LPDDR", 0x1C: "LPDDR2", 0x1D: "LPDDR3",
    0x1E: "LPDDR4", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5", 0x24: "HBM3", 0x07: "RAM",
}  # fmt: skip


def memory_modules(sys: Path = SYS) -> tuple[MemoryModule, ...]:
    """Occupied slots; () if the tables are missing, unreadable or invalid."""
    try:
        table = (sys / "firmware/dmi/tables/DMI").read_bytes()
    except OSError:
        return ()
    return parse(table)


def parse(table: bytes) -> tuple[MemoryModule, ...]:
    modules = (_module(body, strings) for kind, body, strings in structures(table) if kind == _MEMORY_DEVICE)
    return tuple(module for module in modules if module is not None)


def structures(table: bytes) -> Iterator[tuple[int, bytes, tuple[str, ...]]]:
    """Yield (type, formatted part with header, strings), until the end structure or a truncated one."""
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\x00\x00", at + length)
        if length < 4 or end < 0:
            return
        strings = table[at + length : end].split(b"\x00")
        yield kind, table[at : at + length], tuple(text.decode("ascii", "replace").strip() for text in strings)
        if kind == _END:
            return
        at = end + 2


def _module(body: bytes, strings: tuple[str, ...]) -> MemoryModule | None:
    size = _size_bytes(body)
    if not size:
        return None
    speed = _word(body, 0x20) or _word(body, 0x15)  # configured, else rated; MT/s
    return MemoryModule(
        slot=_string(body, 0x10, strings),
        bank=_string(body, 0x11, strings),
        size_bytes=size,
        kind=_KINDS.get(body[0x12], "") if len(body) > 0x12 else "",
        data_bits=_word(body, 0x0A),
        transfers_per_s=speed * 1_000_000 if speed else None,
    )


def _size_bytes(body: bytes) -> int:
    """0 is an empty slot. Bit 15 means KiB instead of MiB; 0x7fff means that the extended size (MiB) applies."""
    if len(body) < 0x0E:
        return 0
    (size,) = struct.unpack_from("<H", body, 0x0C)
    if size in (0, _UNKNOWN_SIZE):
        return 0
    if size == _EXTENDED:
        return (struct.unpack_from("<I", body, 0x1C)[0] & 0x7FFFFFFF) * 2**20 if len(body) >= 0x20 else 0
    return int(size & 0x7FFF) * (2**10 if size & 0x8000 else 2**20)


def _word(body: bytes, offset: int) -> int | None:
    """0 and 0xffff mean unknown."""
    if len(body) < offset + 2:
        return None
    (value,) = struct.unpack_from("<H", body, offset)
    return value if value not in (0, 0xFFFF) else None


def _string(body: bytes, offset: int, strings: tuple[str, ...]) -> str:
    number = body[offset] if len(body) > offset else 0
    return strings[number - 1][:MAX_LABEL] if 0 < number <= len(strings) else ""
