"""The parts of layouts that this host can build: the kernel supports them, and their tools are installed."""

import os
from pathlib import Path

from worker.contract.layouts import FileSystem
from worker.controllers import ADAPTERS
from worker.process import ToolError, ask, find

# Part -> (sign of kernel support: a file and optionally a word in it; module; program).
_STACKS = {
    "md": (Path("/proc/mdstat"), "", "md-mod", "mdadm"),
    "lvm": (Path("/proc/misc"), "device-mapper", "dm-mod", "lvcreate"),
}


def offered() -> tuple[str, ...]:
    """`share`, `vd`, `md`, `lvm`, and file systems; (): not root, so none."""
    if os.geteuid() != 0:
        return ()
    stacks = [
        name for name, (file, word, module, tool) in _STACKS.items() if find((tool,)) and _known(file, word, module)
    ]
    kinds = [
        str(kind)
        for kind in FileSystem
        if kind is not FileSystem.NONE
        and find((f"mkfs.{kind}",))
        and _known(Path("/proc/filesystems"), f"\t{kind}\n", str(kind))
    ]
    made = any(find(adapter.programs) for adapter in ADAPTERS if adapter.makes_virtual_drives)
    return (*(["share"] if find(("sfdisk",)) else []), *(["vd"] if made else []), *stacks, *kinds)


def _known(file: Path, word: str, module: str) -> bool:
    """True if the kernel has it, or could load its module."""
    try:
        if word in file.read_text():
            return True
    except OSError:
        pass
    try:
        return ask("modprobe", "--dry-run", "--quiet", module).exit_code == 0
    except ToolError:
        return False
