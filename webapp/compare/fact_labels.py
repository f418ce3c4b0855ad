"""Labels of the facts of a configuration (`worker.inventory.facts`), in the order in which pages list them."""

from webapp.plans.factors import FACTORS

LABELS = {
    "host": "Host", "device.size_bytes": "Size", "device.serial": "Serial", "device.transport": "Link",
    "device.firmware": "Firmware", "device.model": "Model", "kernel.release": "Kernel",
    "kernel.command_line": "Kernel command line", "cpu.model": "CPU", "cpu.cores": "CPU cores",
    "cpu.threads": "CPU threads", "cpu.sockets": "CPU sockets", "cpu.governor": FACTORS["cpu.governor"].label,
    "memory.bytes": "Memory", "distribution": "Distribution", "hypervisor": "Hypervisor", "tool": "Tool",
    "device.controller.model": "Controller", "device.controller.firmware": "Controller firmware",
    "device.controller.driver": "Driver", "device.controller.driver_version": "Driver version",
    "device.write_cache": "Cache policy", "file_system": "File system", "file_system.options": "Mount options",
    "drive_state": "Drive state", "worker.version": "Worker", "target.kind": "Kind of target", "device.kind": "Kind",
    "device.logical_block_size": "Logical block size", "device.physical_block_size": "Physical block size",
    "device.minimum_io_size": "Smallest efficient I/O", "device.optimal_io_size": "Optimal I/O",
    "device.max_hw_sectors_kb": "Largest request of the hardware",
    "device.fua": "Force unit access", "device.zoned": "Zoned",
}  # fmt: skip


def label_of_fact(name: str) -> str:
    """The label of the setting that the fact observes, or the name itself if it has no label."""
    scope, _, setting = name.partition(".")
    if name in LABELS or scope not in ("device", "host") or setting not in FACTORS:
        return LABELS.get(name, name)
    return FACTORS[setting].label
