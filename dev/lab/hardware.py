"""The drives and controllers of the virtual storage server, as QEMU arguments.

Models, serials and WWNs are invented. Every serial begins with LAB: tests of hardware use only such drives.
"""

from collections.abc import Sequence
from pathlib import Path

DRIVE_BYTES = 2**30
BAYS = 4  # of the MegaRAID controller
NVME_QUEUES = 3  # one for each CPU, and one for polled completions
# The drive that is removed and inserted while the machine runs.
REMOVABLE, REMOVABLE_DRIVE, REMOVABLE_SERIAL = "removable", "virtio0", "LABVS0"
REMOVABLE_DEVICE = (
    f"scsi-hd,id={REMOVABLE},bus=virtio.0,drive={REMOVABLE_DRIVE},vendor=LAB,product=VIRTSSD,serial={REMOVABLE_SERIAL},"
    "rotation_rate=1"
)


def arguments(drives: Path) -> Sequence[str]:
    """All devices. The drives are new, empty, sparse files in the directory."""
    found = [
        "-device", "pcie-root-port,id=slot1,chassis=1,slot=1,x-speed=5,x-width=8",
        "-device", "pcie-root-port,id=slot2,chassis=2,slot=2,x-speed=8,x-width=4",
        "-device", "pcie-root-port,id=slot3,chassis=3,slot=3,x-speed=8,x-width=4",
        "-device", "megasas-gen2,id=raid,bus=slot1,hba_serial=LABRAID1",
    ]  # fmt: skip
    for bay in range(BAYS):
        found += [*_drive(f"sas{bay}", drives), "-device", _sas_drive(bay)]
    for number, block in enumerate((512, 4096)):
        found += [
            *_drive(f"nvme{number}", drives),
            "-device", f"nvme,id=nvme{number},bus=slot{number + 2},serial=LABNVME{number},max_ioqpairs={NVME_QUEUES}",
            "-device", f"nvme-ns,bus=nvme{number},drive=nvme{number},nsid=1,logical_block_size={block},"
            "physical_block_size=4096",
        ]  # fmt: skip
    return (
        *found,
        *_drive(REMOVABLE_DRIVE, drives), "-device", "virtio-scsi-pci,id=virtio",
        "-device", REMOVABLE_DEVICE,
        *_drive("hdd0", drives), "-device", "mptsas1068,id=hba",
        "-device", "scsi-hd,bus=hba.0,scsi-id=0,drive=hdd0,vendor=SEAGATE,product=ST300MM0006,ver=LS08,"
        "serial=LABHDD0,rotation_rate=10000,wwn=0x5000c50000000001",
        *_drive("sata0", drives),
        "-device", "ide-hd,bus=ide.0,drive=sata0,model=LAB SATA SSD,serial=LABSATA0,rotation_rate=1,ver=F1",
    )  # fmt: skip


def backend(name: str, drives: Path) -> str:
    return f"if=none,id={name},format=raw,file={drives / name}.raw,cache=writeback,discard=unmap"


def _drive(name: str, drives: Path) -> Sequence[str]:
    with (drives / f"{name}.raw").open("wb") as file:
        file.truncate(DRIVE_BYTES)
    return ("-drive", backend(name, drives))


def _sas_drive(bay: int) -> str:
    """Behind the controller: two drives of an Intel model and two of a Samsung model."""
    vendor, product, version = ("INTEL", "SSDSC2BB300G4", "D201") if bay < 2 else ("SAMSUNG", "MZ7KM240HAGR", "GXM1")
    return (
        f"scsi-hd,id=bay{bay},bus=raid.0,scsi-id={bay},drive=sas{bay},vendor={vendor},product={product},"
        f"ver={version},serial=LAB{vendor[:3]}{bay:04d},rotation_rate=1,wwn=0x50025388{bay:08x},"
        "physical_block_size=4096"
    )
