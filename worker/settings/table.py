"""Generate the page that documents all settings: `python -m worker.settings.table > docs/reference/settings.md`."""

from worker.settings import REGISTRY
from worker.settings.base import Setting, SettingScope

_SCOPES = {SettingScope.DEVICE: "device", SettingScope.CONTROLLER: "controller", SettingScope.HOST: "host"}
_LOOP, _HERE = "loop devices, kernels 6.1 and 6.18", "a host with kernel 6.18, a guest with 6.1"
_GUEST = "virtual storage server (QEMU, kernel 6.1)"
_NOWHERE = "emulated sysfs folders; not on real hardware"
_EMULATED = "emulations of storcli, MegaCli, ssacli and areca-cli; not on real hardware"
# Where tests have written each setting, read it back and restored it.
_TRIED = {
    "io_poll": f"refusal only: {_LOOP}, NVMe with poll queues of the {_GUEST}",
    "queue_depth": f"{_GUEST}: virtio-scsi, SAS HBA, MegaRAID",
    "drive_write_cache": f"{_GUEST}: virtio-scsi, SATA, SAS HBA, MegaRAID",
    "md.stripe_cache_size": f"{_GUEST}: RAID 5",
    "md.sync_speed_min": f"{_GUEST}: RAID 5",
    "md.sync_speed_max": f"{_GUEST}: RAID 5",
    "irq_affinity": f"{_GUEST}: MegaRAID changed, NVMe refused (kernel-managed)",
    "nvme.write_cache": f"{_GUEST}",
    "nvme.power_state": f"{_GUEST}: read; write refused, because the drive has one state",
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

A plan can change these settings of a host. The worker restores them at the end of the run, when the run is cancelled,
and after a crash. A write that failed or could not be read back counts as a change. A setting of a *device* belongs to
the block device under the target. A setting of a *controller* affects everything behind the controller. A setting of
the *host* affects everything on the host. The policy file allows settings of devices and controllers with each target,
and settings of the host under `[host]`. `*` for a target allows all settings of the device, except those marked "by
name", which can lose data or affect other drives.

| setting | scope | description | policy | survives a restart | tested on |
| --- | --- | --- | --- | --- | --- |
"""
_FOOT = """
The settings `controller.…` belong to a virtual drive of a RAID controller. The worker sets them through the
controller's tool ([controllers.md](controllers.md)). storcli and perccli set all four; MegaCli also sets adaptive
read-ahead; ssacli and areca-cli set only the write cache. A controller with a bad, charging or learning battery writes
through although write back is configured. A trial that requested write back then fails with `setting_clamped`, and its
settings show both values: requested `write back`, observed `write through (set to write back)`. The worker restores the
configured value, including MegaCli's separate mode for a bad battery. It does not change a value that the tool could
not restore.

`make lab ARGS=settings` changes 44 of these {count} settings by plans, in a virtual machine with Debian 12, MegaRAID,
SATA and NVMe drives and an md array; the worker is a systemd service with all its restrictions. Each setting is read
back and restored. `irqbalance` is tested separately in the same virtual machine. QEMU's devices accept no change of
`io_poll` and `nvme.power_state`. The other seven settings do not exist in QEMU: see their rows. A scheduler that is a
module (`bfq` and `kyber` on Debian) can be selected after it was loaded with `modprobe bfq`. The worker loads no
modules.

The placement of an engine's processes (`nice`, `ionice`, `cpus`, `cpus_policy`, `numa_node`) is part of the workload,
not a setting. It ends with the processes, so there is nothing to restore.
"""


def page() -> str:
    return _HEAD + "".join(map(_row, REGISTRY.values())) + _FOOT.replace("{count}", str(len(REGISTRY)))


def _row(setting: Setting) -> str:
    policy = "by name" if setting.by_name_only or setting.scope is SettingScope.HOST else "`*` or name"
    tried = _TRIED.get(setting.name) or (_HERE if setting.scope is SettingScope.HOST else _LOOP)
    survives = "may" if setting.survives_reboot else "no"
    return (
        f"| `{setting.name}` | {_SCOPES[setting.scope]} | {setting.description} | {policy} | {survives} | {tried} |\n"
    )


if __name__ == "__main__":
    print(page(), end="")
