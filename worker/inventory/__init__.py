"""The inventory: this host's hardware from /sys, /proc and /etc, and from tools of device-mapper and controllers."""

from pathlib import Path

from worker.contract.inventory import Inventory
from worker.controllers import ToolAnswers
from worker.inventory import controllers, host
from worker.inventory.devices import block_devices
from worker.inventory.dmi import memory_modules
from worker.inventory.facts import observed_facts
from worker.inventory.file_systems import file_systems
from worker.inventory.pci import functions
from worker.inventory.sysfs import SYS
from worker.inventory.usage import PROC, read_usage

__all__ = ["observed_facts", "take"]


def take(*, told: ToolAnswers | None = None, sys: Path = SYS, proc: Path = PROC, etc: Path = host.ETC) -> Inventory:
    """Take the inventory. With other roots, read a recorded tree without opening devices.

    `told`: answers of the controllers' tools. Without it, the tools are called now, which can take seconds.
    """
    seen = read_usage(sys, proc)
    devices, found = block_devices(seen, sys, open_devices=sys == SYS), functions(sys)
    said = told or (controllers.ask_tools(sys) if sys == SYS else ToolAnswers())
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
        pci=found,
        file_systems=file_systems(seen, sys),
        controllers=controllers.take(found, devices, said, sys),
    )
