"""A program of the guest that stands for storcli: QEMU's MegaRAID has no virtual drives, and storcli is not in Debian.

It reports the drive in the first bay as a virtual drive, and keeps the cache policies in a file. The policies do not
change how the drive works.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from dev.lab.storage_host import BAYS, DRIVES, StorageHost
from dev.lab.system import System
from worker.controllers.tests.emulations import HEAD, START, STORCLI

PROGRAM = "/usr/local/sbin/storcli64"
STATE = "/var/lib/sweetspot-worker/storcli.json"  # the service can write here
DRIVER = "/sys/bus/pci/drivers/megaraid_sas"
POLICIES = ("write", "read", "io", "disk")


@contextmanager
def installed(system: System) -> Iterator[None]:
    """Install the program for a while. The server learns of the virtual drive from a new inventory."""
    storage = system.storage
    start = {**START, "naa": DRIVES[BAYS[0]][0].removeprefix("wwn-0x"), "address": _address(storage)}
    storage.write(STATE, json.dumps(start))
    storage.write(PROGRAM, "#!/usr/bin/python3 -IS\n" + HEAD.format(path=STATE) + STORCLI)
    storage.run("chmod", "755", PROGRAM)
    try:
        system.take_inventory()
        yield
    finally:
        storage.run("rm", PROGRAM, STATE)


def problems(storage: StorageHost) -> list[str]:
    """Policies that were never set, or that are not as before."""
    state = json.loads(storage.run("cat", STATE))
    left = [f"storcli: {name} is {state[name]}, was {START[name]}" for name in POLICIES if state[name] != START[name]]
    wanted = ("wrcache=wb", "wrcache=wt", "rdcache=ra", "rdcache=nora")
    asked = {word for line in state["asked"] for word in line.split()}
    return left + [f"storcli was never called with {word}" for word in wanted if word not in asked]


def _address(storage: StorageHost) -> str:
    """The controller's PCI address as storcli writes it: domain, bus, device and function with colons."""
    (found,) = storage.run_in_shell(f"cd {DRIVER} && ls -d 0000:*").split()
    return found.removeprefix("00").replace(".", ":0")
