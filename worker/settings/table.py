"""The page of documentation that lists all settings: `python -m worker.settings.table > docs/settings.md`."""

from worker.settings import REGISTRY, SettingScope
from worker.settings.base import Setting

_SCOPES = {SettingScope.DEVICE: "device", SettingScope.CONTROLLER: "controller", SettingScope.HOST: "host"}
_LOOP, _HERE = "loop devices, kernels 6.1 and 6.18", "a host with kernel 6.18, a guest with 6.1"
_GUEST = "virtual storage server (QEMU, kernel 6.1)"
_NOWHERE = "folders that look like /sys; not on real hardware"
_EMULATED = "emulations of storcli, MegaCli, ssacli and areca-cli; not on real hardware"
# Where its tests have applied it, read it back and put it back.
_TRIED = {
    "io_poll": f"refusal only: {_LOOP}, NVMe of the {_GUEST}",
    "queue_depth": f"{_GUEST}: virtio-scsi, SAS HBA, MegaRAID",
    "drive_write_cache": f"{_GUEST}: virtio-scsi, SATA, SAS HBA, MegaRAID",
    "md.stripe_cache_size": f"{_GUEST}: RAID 5",
    "md.sync_speed_min": f"{_GUEST}: RAID 5",
    "md.sync_speed_max": f"{_GUEST}: RAID 5",
    "irq_affinity": f"{_GUEST}: MegaRAID moved, NVMe refused as kernel-managed",
    "nvme.write_cache": f"{_GUEST}",
    "nvme.power_state": f"{_GUEST}: read and refused, it has one state",
    "controller.write_cache": _EMULATED,
    "controller.read_ahead": _EMULATED,
    "controller.io_policy": _EMULATED,
    "controller.disk_cache": _EMULATED,
    "irqbalance": f"{_GUEST}: a service of that name under systemd",
    "cpu.governor": _NOWHERE,
    "cpu.energy_preference": _NOWHERE,
    "cpu.deepest_idle_state": "a host with kernel 6.18",
}
_HEAD = """# Settings

What a plan can change on a host, put back at the end of the run, on cancel and after a crash. A setting of a
*device* is of the block device under the target, one of a *controller* touches everything behind it, one of the
*host* everything on it. The policy file lists those of devices and controllers with the target, those of the host
under `[host]`; `*` for a target covers the device's own, except those marked "by name", which can cost data or touch
other drives.

| setting | of | what it is | policy | survives a restart | tried on |
| --- | --- | --- | --- | --- | --- |
"""
_FOOT = """
The settings `controller.…` are of the virtual drive of a RAID controller and go through its tool
([controllers.md](controllers.md)): storcli and perccli set all four, MegaCli too and adaptive read-ahead besides,
ssacli and areca-cli the write cache. A controller with a bad, charging or learning battery writes through although it
is set to write back. A trial that asked for write back then fails with `setting_clamped`, and its settings show both:
asked `write back`, observed `write through (set to write back)`. Put back is how it was set, with what MegaCli keeps
beside it for a bad battery. A value that the tool could not put back is not changed.

`make lab ARGS=settings` sets 44 of these 54 by plans, in a guest with Debian 12 on MegaRAID, SATA and NVMe drives and
an md array, with the worker as systemd's service under all its restrictions; each is read back and put back. There a
test beside the service switches `irqbalance`, and `io_poll` and `nvme.power_state` are refused by what QEMU has. The
other seven are not there in QEMU: see their rows. A scheduler that is a module (`bfq`, `kyber` on Debian) is one to
choose once it is loaded: `modprobe bfq`. The worker loads no modules.

Where fio itself runs (`nice`, `ionice`, `cpus`, `cpus_policy`, `numa_node`) is no setting but part of the workload:
fio sets it for its own processes, it is in the job text, and it ends with them, so nothing has to be put back.
"""


def page() -> str:
    return _HEAD + "".join(map(_row, REGISTRY.values())) + _FOOT


def _row(setting: Setting) -> str:
    policy = "by name" if setting.by_name_only or setting.scope is SettingScope.HOST else "`*` or name"
    tried = _TRIED.get(setting.name) or (_HERE if setting.scope is SettingScope.HOST else _LOOP)
    survives = "may" if setting.survives_reboot else "no"
    return f"| `{setting.name}` | {_SCOPES[setting.scope]} | {setting.describe()} | {policy} | {survives} | {tried} |\n"


if __name__ == "__main__":
    print(page(), end="")
