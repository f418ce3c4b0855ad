"""The host itself: processor, memory, kernel, distribution, hypervisor."""

import os
import platform
import shlex
from pathlib import Path

from worker.contract.inventory import Cpu, Kernel, NumaNode
from worker.inventory.sysfs import SYS, text
from worker.inventory.usage import PROC
from worker.text_limits import MAX_LABEL, MAX_TEXT

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
        mitigations=_mitigations(sys),
    )


def _of_all(sys: Path, file: str) -> str:
    """A frequency setting; all values if processors differ; "" without one (most guests)."""
    paths = (sys / "devices/system/cpu").glob(f"cpu[0-9]*/cpufreq/{file}")
    return ",".join(sorted({text(path) for path in paths} - {""}))[:MAX_LABEL]


def _mitigations(sys: Path) -> dict[str, str]:
    paths = sorted((sys / "devices/system/cpu/vulnerabilities").glob("*"))
    return {path.name: found[:MAX_LABEL] for path in paths if (found := text(path))}


def numa_nodes(sys: Path) -> tuple[NumaNode, ...]:
    found = []
    for at in sorted((sys / "devices/system/node").glob("node[0-9]*"), key=lambda each: int(each.name[4:])):
        rows = (line.split() for line in text(at / "meminfo").splitlines())
        total = next((int(row[3]) * 1024 for row in rows if len(row) > 3 and row[2] == "MemTotal:"), 0)
        found.append(NumaNode(number=int(at.name[4:]), cpus=text(at / "cpulist")[:MAX_LABEL], memory_bytes=total))
    return tuple(found)


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
    told = " ".join(text(sys / "class/dmi/id" / name) for name in ("sys_vendor", "product_name", "bios_vendor"))
    if found := next((word for vendor, word in _VENDORS.items() if vendor in told), ""):
        return found
    flags = next(iter(_cpuinfo(proc)), {}).get("flags", "").split()
    return "unknown" if "hypervisor" in flags else ""


def hostname() -> str:
    return os.uname().nodename[:MAX_LABEL]
