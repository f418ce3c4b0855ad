"""Inventories of drives behind links."""

from worker.contract.inventory import (
    BlockDevice,
    Cpu,
    Inventory,
    Kernel,
    MemoryModule,
    PcieLink,
    PciFunction,
)

GT = 1_000_000_000


def link(transfers: int, lanes: int, *, payload: int | None = 256, degraded: bool = False) -> PcieLink:
    return PcieLink(transfers_per_s=transfers, lanes=lanes, payload_bytes=payload, degraded=degraded)


def function(address: str, parent: str = "", kind: str = "nvme", at: PcieLink | None = None) -> PciFunction:
    """`root` and `down…` are upper ends of links."""
    down = address == "root" or address.startswith("down")
    return PciFunction(
        address=address, parent=parent, kind=kind, vendor_id="1", device_id="2", model="X", link=at, downstream=down
    )


def disk(name: str, controller: str = "", **more: object) -> BlockDevice:
    given = {"kind": "disk", "major_minor": "1:0", "stable_id": f"x-{name}", "controller": controller} | more
    return BlockDevice(name=name, path=f"/dev/{name}", **given)  # type: ignore[arg-type]


def inventory(devices: list[BlockDevice], pci: list[PciFunction], modules: tuple[MemoryModule, ...] = ()) -> Inventory:
    return Inventory(
        hostname="a", distribution="", hypervisor="", cpu=Cpu(model="", sockets=1, cores=1, threads=1), memory_bytes=0,
        kernel=Kernel(release="", command_line="", boot_id=""), block_devices=tuple(devices), pci=tuple(pci),
        memory_modules=modules,
    )  # fmt: skip
