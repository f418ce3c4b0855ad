"""A RAID controller of a host: the drive looks like its virtual drive, and a program stands for storcli."""

import json
import sys
from pathlib import Path

from worker.controllers.tests.emulations import NAA, START, STORCLI

ADDRESS, DRIVER, PLACE = "0000:03:00.0", "megaraid_sas", "host0/target0:2:0/0:2:0:0"
PROGRAM = "storcli64"
BEFORE = "wb"  # write cache at the start
_HEAD = """#!{python} -IS
import json, os, sys, time
words = sys.argv[1:]
state = json.load(open({state!r}))
good = True
def save():
    with open({state!r} + ".new", "w") as file:
        json.dump(state, file)
    os.replace({state!r} + ".new", {state!r})
    if os.path.exists({hangs!r}):  # after it has applied the change
        open({hung!r}, "w").close()
        time.sleep(600)
"""


class RaidController:
    def __init__(self, folder: Path, programs: Path) -> None:
        folder.mkdir()
        self.sys = folder / "sys"
        self.hangs = folder / "hangs"  # as long as this file exists, a program that changes a policy never ends
        self.hung = folder / "hung"  # a program that never ends has started
        self._state = folder / "state.json"
        self._state.write_text(json.dumps({**START, "write": BEFORE}))
        head = _HEAD.format(python=sys.executable, state=str(self._state), hangs=str(self.hangs), hung=str(self.hung))
        (programs / PROGRAM).write_text(head + STORCLI)
        (programs / PROGRAM).chmod(0o755)

    def add(self, device: str) -> None:
        """Put a block device behind the controller."""
        function = self.sys / "devices/pci0000:00" / ADDRESS
        disk = function / PLACE
        block = disk / "block" / Path(device).name
        block.mkdir(parents=True)
        (block / "size").write_text("2048\n")
        (disk / "wwid").write_text(f"naa.{NAA}\n")
        driver = self.sys / "bus/pci/drivers" / DRIVER
        driver.mkdir(parents=True)
        _link(function / "driver", driver)
        _link(self.sys / "bus/pci/devices" / ADDRESS, function)
        _link(block / "device", disk)
        _link(self.sys / "class/block" / block.name, block)

    @property
    def write_cache(self) -> str:
        found: str = json.loads(self._state.read_text())["write"]
        return found


def _link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)
