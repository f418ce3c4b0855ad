"""A host whose drives wear."""

import json
from pathlib import Path

import worker
from worker.contract.items import DriveReading, ReadingMoment
from worker.drives.wear import Wear

RECORDED = Path(worker.__file__).parent / "inventory/tests/recorded/smartctl-7.3-nvme.json"


class Host:
    """An NVMe drive with a partition, and what was read of it."""

    def __init__(self, root: Path) -> None:
        self.sys, self.state, self.asked = root / "sys", root / "state", root / "asked"
        self.node = self.sys / "devices/pci0000:00/nvme/nvme0/nvme0n1"
        self.said: list[DriveReading] = []
        (self.node / "device").mkdir(parents=True)
        (self.node / "nvme0n1p1").mkdir()
        for name, text in {"dev": "259:0", "size": "1000", "device/transport": "pcie", "device/serial": "LABNVME0",
                           "wwid": "eui.1", "nvme0n1p1/partition": "1", "nvme0n1p1/dev": "259:1"}.items():  # fmt: skip
            (self.node / name).write_text(text + "\n")
        blocks = self.sys / "class/block"
        blocks.mkdir(parents=True)
        (blocks / "nvme0n1").symlink_to(self.node)
        (blocks / "nvme0n1p1").symlink_to(self.node / "nvme0n1p1")
        self.tool = root / "bin/smartctl"
        self.tool.parent.mkdir()
        self.has_written(0)

    def has_written(self, sectors: int, units: int = 0) -> None:
        """By the kernel's counter, and by the drive's."""
        (self.node / "stat").write_text(f"0 0 0 0 0 0 {sectors} 0 0 0 0 0 0 0 0\n")
        answer = json.loads(RECORDED.read_text())
        answer["nvme_smart_health_information_log"]["data_units_written"] = units
        self.tool.with_suffix(".json").write_text(json.dumps(answer))
        self.tool.write_text(f"#!/bin/sh\necho asked >>{self.asked}\nexec cat {self.tool}.json\n")
        self.tool.chmod(0o755)

    def wear(self, run: str = "r1") -> Wear:
        return Wear(self.state, run, self.said.append, self.sys)

    def moments(self) -> list[tuple[ReadingMoment, int | None]]:
        return [(each.moment, each.kernel_written_bytes) for each in self.said]

    def times_asked(self) -> int:
        return len(self.asked.read_text().split()) if self.asked.exists() else 0
