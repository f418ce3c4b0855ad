"""The inventory: this host's hardware from /sys, /proc and /etc, and from tools of device-mapper and controllers."""

import os
from collections.abc import Mapping
from pathlib import Path

from worker import __version__, controllers
from worker.contract.base import MAX_TEXT
from worker.contract.inventory import Inventory
from worker.contract.workload import Stream
from worker.controllers import ToolAnswers
from worker.inventory import host
from worker.inventory.devices import block_devices, file_systems
from worker.inventory.host import memory_modules
from worker.kernel import pci, sysfs
from worker.kernel.pci import functions
from worker.kernel.sysfs import SYS
from worker.kernel.targets import OpenTarget
from worker.kernel.usage import PROC, mount_of, read_usage

# The configuration of a stream as flat facts, for comparing results.


def observed_facts(open_target: OpenTarget, stream: Stream) -> dict[str, str]:
    """Facts about the host, the device under the target and, for files, the file system."""
    facts = host_facts()
    for name in (*open_target.devices, *open_target.members):
        facts |= device_facts(name)
    for over in open_target.devices:
        facts |= {f"device.{over}.below.{name}": sysfs.stable_id(name) for name in sysfs.below(over)}
    facts |= {f"stream.{stream.number}.{key}": value for key, value in _target_facts(open_target, stream).items()}
    known = {key: value[:MAX_TEXT] for key, value in facts.items() if value}
    return same_in_each_build(known) if open_target.members else known


def same_in_each_build(facts: Mapping[str, str]) -> dict[str, str]:
    """The facts without the mount point and the UUIDs of a layout, which each build draws again: they would make each
    build another configuration."""
    return {
        key: value
        for key, value in facts.items()
        if not (key.endswith(".file_system.mount") or value.startswith(("md-uuid-", "dm-uuid-")))
    }


def host_facts(sys: Path = SYS, proc: Path = PROC) -> dict[str, str]:
    cpu, kernel = host.read_cpu(sys, proc), host.read_kernel(proc)
    return {
        "worker.version": __version__,
        "kernel.release": kernel.release,
        "kernel.command_line": kernel.command_line,
        "distribution": host.distribution(),
        "hypervisor": host.hypervisor(sys, proc),
        "cpu.model": cpu.model,
        "cpu.sockets": str(cpu.sockets),
        "cpu.cores": str(cpu.cores),
        "cpu.threads": str(cpu.threads),
        "cpu.governor": cpu.governor,
        "memory.bytes": str(host.memory_bytes(proc)),
    }


def device_facts(name: str, sys: Path = SYS) -> dict[str, str]:
    device = sysfs.read_device(name, sys)
    facts = {
        "stable_id": device.stable_id,
        "kind": device.kind,
        "model": device.model,
        "serial": device.serial,
        "firmware": sysfs.firmware(name, sys),
        "transport": sysfs.transport(name, sys),
        "size_bytes": str(device.size_bytes),
        "scheduler": sysfs.schedulers(name, sys)[0],
        **_controller_facts(name, sys),
        "loop.direct_io": sysfs.attribute(name, "loop/dio", sys),
        **{key: sysfs.attribute(name, f"queue/{key}", sys) for key in sysfs.QUEUE_FACTS},
    }
    return {f"device.{name}.{key}": value for key, value in facts.items()}


def _controller_facts(name: str, sys: Path) -> dict[str, str]:
    """Facts of the device's PCI function, if the kernel shows a single one."""
    address = sysfs.controller(name, sys)
    if not address:
        return {}
    function = pci.function(address, sys)
    return {f"controller.{key}": getattr(function, key) for key in ("model", "firmware", "driver", "driver_version")}


def _target_facts(open_target: OpenTarget, stream: Stream) -> dict[str, str]:
    facts = {
        "target": stream.target.id,
        "target.kind": stream.target.kind.value,
        "device": ", ".join(open_target.devices),
    }
    if open_target.directory_fd is None:
        return facts
    return facts | _file_system_facts(open_target.directory_fd)


def _file_system_facts(directory_fd: int) -> dict[str, str]:
    space = os.fstatvfs(directory_fd)
    mount = mount_of(directory_fd)
    facts = {"file_system.size_bytes": str(space.f_frsize * space.f_blocks)}
    if mount is None:
        return facts
    return facts | {"file_system": mount.kind, "file_system.options": mount.options, "file_system.mount": mount.point}


def take(*, told: ToolAnswers | None = None, sys: Path = SYS, proc: Path = PROC, etc: Path = host.ETC) -> Inventory:
    """Take the inventory. With other roots, read a recorded tree without opening devices.

    `told`: answers of the controllers' tools. Without it, the tools are called now, which can take seconds.
    """
    usage = read_usage(sys, proc)
    devices, pci_functions = block_devices(usage, sys, open_devices=sys == SYS), functions(sys)
    answers = told or (controllers.ask_tools(sys) if sys == SYS else ToolAnswers())
    return Inventory(
        hostname=host.hostname(),
        distribution=host.distribution(etc),
        hypervisor=host.hypervisor(sys, proc),
        cpu=host.read_cpu(sys, proc),
        memory_bytes=host.memory_bytes(proc),
        kernel=host.read_kernel(proc),
        block_devices=devices,
        numa_nodes=host.numa_nodes(sys),
        memory_modules=memory_modules(sys),
        pci=pci_functions,
        file_systems=file_systems(usage, sys),
        controllers=controllers.take(pci_functions, devices, answers, sys),
    )
