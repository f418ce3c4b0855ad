"""What this host is made of, read from /sys, /proc and /etc alone: no tool is started."""

from pathlib import Path

from worker.contract.inventory import Inventory
from worker.inventory import host
from worker.inventory.devices import block_devices
from worker.inventory.facts import observed_facts
from worker.inventory.sysfs import SYS
from worker.inventory.usage import PROC, look

__all__ = ["observed_facts", "take"]


def take(*, sys: Path = SYS, proc: Path = PROC, etc: Path = host.ETC) -> Inventory:
    """Look at everything once. With other roots a recorded tree is read and no device is opened."""
    return Inventory(
        hostname=host.hostname(),
        distribution=host.distribution(etc),
        hypervisor=host.hypervisor(sys, proc),
        cpu=host.read_cpu(sys, proc),
        memory_bytes=host.memory_bytes(proc),
        kernel=host.read_kernel(proc),
        block_devices=block_devices(look(sys, proc), sys, open_devices=sys == SYS),
    )
