"""Devices with several paths in a sysfs of files."""

from pathlib import Path

from worker.kernel.tests.tree import Tree

WWID = "naa.6000d31003d5d4000000000000000012"


def tree_with_paths(tmp_path: Path, **second: str) -> Tree:
    """One LUN as sda and sdb, and another one of the same array as sdc."""
    tree = Tree(tmp_path)
    lun = {"size": "4096", "device__wwid": WWID, "device__vendor": "DELL", "device__model": "MD34xx"}
    tree.add("sda", "pci0/host0/port-0:0/end_device-0:0/block", "8:0", **lun)
    tree.add("sdb", "pci0/host1/port-1:0/end_device-1:0/block", "8:16", **{**lun, **second})
    tree.add("sdc", "pci0/host1/port-1:1/end_device-1:1/block", "8:32", **{**lun, "device__wwid": WWID[:-1] + "3"})
    return tree
