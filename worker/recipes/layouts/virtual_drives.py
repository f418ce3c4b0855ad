"""Commands of controllers' tools that make and delete virtual drives. Pure: nothing is run here.

Syntax: Broadcom, StorCLI Reference Manual, `add vd`, `set autobgi`, `del`; LSI, MegaRAID SAS Software User Guide
(MegaCli), `-CfgLdAdd`, `-CfgSpanAdd`, `-LDBI`, `-CfgLdDel`. None of it was tried on real hardware.

A choice that a number depends on: background initialisation of mirrors and parity is switched off, as md gets
--assume-clean. It would run under the measurement; parity is right only where it was written since.

Deleting is never forced: what a tool says holds a file system or the host itself stays.
"""

import re

import msgspec

from worker.contract.layouts import DrivePolicy, Layout, Raid

STORCLI, MEGACLI = "storcli", "MegaCli"
_SPELT = {  # MegaCli's words; storcli's are DrivePolicy's own
    DrivePolicy.WRITE_BACK: ("WB", "NoCachedBadBBU"),
    DrivePolicy.WRITE_THROUGH: ("WT",),
    DrivePolicy.ALWAYS_WRITE_BACK: ("WB", "CachedBadBBU"),
    DrivePolicy.READ_AHEAD: ("RA",),
    DrivePolicy.NO_READ_AHEAD: ("NORA",),
    DrivePolicy.DIRECT: ("Direct",),
    DrivePolicy.CACHED: ("Cached",),
}
_DISK_CACHE = {DrivePolicy.DISK_CACHE_ON: "EnDskCache", DrivePolicy.DISK_CACHE_OFF: "DisDskCache"}
_SLOT = re.compile(r"/(?P<tool>[\w-]+)/(?P<controller>\w+)/(?P<slot>\d*:\d+)", re.ASCII)

Command = tuple[str, ...]


class Bay(msgspec.Struct, frozen=True):
    """Where a drive sits, as a controller's tool calls it: as a drive's path `/storcli/0/252:3`."""

    tool: str
    controller: str
    slot: str

    def __str__(self) -> str:
        return f"/{self.tool}/{self.controller}/{self.slot}"


def bay(path: str) -> Bay | None:
    """None for what is no drive behind a controller whose tool makes virtual drives."""
    found = _SLOT.fullmatch(path)
    if found is None or family(found["tool"]) is None:
        return None
    return Bay(found["tool"], found["controller"], found["slot"])


def family(tool: str) -> str | None:
    """Whose words an adapter speaks; None where this worker makes no virtual drives with it."""
    return {"storcli": STORCLI, "perccli": STORCLI, "MegaCli": MEGACLI}.get(tool)


def create(tool: str, controller: str, slots: tuple[str, ...], layout: Layout, name: str) -> Command:
    """The arguments of the tool. `slots` are of one array."""
    strip = (layout.chunk_bytes or 0) // 1024
    if family(tool) == MEGACLI:
        spelt = tuple(word for policy in layout.policies for word in _SPELT.get(policy, ()))
        return (*_megacli_arrays(slots, layout), *spelt, f"-strpsz{strip}", f"-a{controller}", "-NoLog")
    spans = (f"PDperArray={len(slots) // layout.spans}",) if layout.spans > 1 else ()
    policies = sorted(layout.policies, key=lambda policy: "=" not in policy)  # pdcache= stands before wb, ra, direct
    return (
        f"/c{controller}", "add", "vd", f"type={layout.raid}", f"name={name}", f"drives={','.join(slots)}", *spans,
        *map(str, policies), f"strip={strip}", "J", "nolog",
    )  # fmt: skip


def _megacli_arrays(slots: tuple[str, ...], layout: Layout) -> Command:
    level = layout.raid.removeprefix("raid")
    if layout.spans == 1:
        return ("-CfgLdAdd", f"-R{level}[{','.join(slots)}]")
    each = len(slots) // layout.spans
    spans = [slots[start : start + each] for start in range(0, len(slots), each)]
    return ("-CfgSpanAdd", f"-R{level}", *(f"-Array{n}[{','.join(span)}]" for n, span in enumerate(spans)))


def settle(tool: str, controller: str, number: str, layout: Layout, name: str) -> tuple[Command, ...]:
    """What is set once it is made: MegaCli names a drive and sets the cache of its disks then."""
    background = layout.raid is not Raid.RAID0
    if family(tool) == MEGACLI:
        of = (f"-L{number}", f"-a{controller}", "-NoLog")
        disk = [word for policy in layout.policies if (word := _DISK_CACHE.get(policy))]
        return (
            ("-LDSetProp", "-Name", name, *of),
            *((("-LDBI", "-Dsbl", *of),) if background else ()),
            *(("-LDSetProp", word, *of) for word in disk),
        )
    return ((f"/c{controller}/v{number}", "set", "autobgi=off", "J", "nolog"),) if background else ()


def delete(tool: str, controller: str, number: str) -> Command:
    if family(tool) == MEGACLI:
        return ("-CfgLdDel", f"-L{number}", f"-a{controller}", "-NoLog")
    return (f"/c{controller}/v{number}", "del", "J", "nolog")
