"""The guest as a host of Sweetspot: its installation by the command of “Add host”, its policy, its service."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from dev.console import ToolError
from dev.lab.machine import SERVER_ADDRESS, Machine
from dev.lab.server import NAME
from dev.stack.network import await_condition
from dev.stack.policy import PolicyTarget, policy_text
from webapp.hosts import wheelhouse

SERVICE = "sweetspot-worker.service"
POLICY = "/etc/sweetspot-worker/policy.toml"
END_LIMIT_S = 60.0
CA_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BAYS = ("bay0", "bay1", "bay2", "bay3")
POOL, FRONT, REAR = "bays", "front", "rear"
POOLS = {POOL: BAYS, FRONT: BAYS[:2], REAR: BAYS[2:]}
NVME, SATA = "nvme0", "sata0"
# The drives that a plan may use: stable id, serial, and the name of the link under by-id if it differs.
DRIVES = {
    "bay0": ("wwn-0x5002538800000000", "LABINT0000", ""),
    "bay1": ("wwn-0x5002538800000001", "LABINT0001", ""),
    "bay2": ("wwn-0x5002538800000002", "LABSAM0002", ""),
    "bay3": ("wwn-0x5002538800000003", "LABSAM0003", ""),
    NVME: ("nvme-QEMU_NVMe_Ctrl_LABNVME0_1", "LABNVME0", ""),
    SATA: ("sata-LAB_SATA_SSD_LABSATA0", "LABSATA0", "ata-LAB_SATA_SSD_LABSATA0"),
}
SETTINGS = (
    "*", "write_cache", "drive_write_cache", "irq_affinity", "nvme.write_cache", "nvme.power_state",
    "controller.write_cache", "controller.read_ahead",
)  # fmt: skip
HOST_SETTINGS = (
    "vm.dirty_ratio", "vm.dirty_bytes", "vm.dirty_background_ratio", "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs", "transparent_hugepage",
)  # fmt: skip


def serials(*slugs: str) -> tuple[str, ...]:
    return tuple(DRIVES[slug][1] for slug in slugs)


def guest_policy() -> str:
    """A policy that allows destructive tests and all settings on every drive, a pool of four drives and two of two."""
    targets = [
        PolicyTarget(
            id=slug, kind="block", path=f"/dev/disk/by-id/{link or stable_id}", stable_id=stable_id, serial=serial,
            destroy=True, settings=SETTINGS, purge=("nvme_format",),
        )
        for slug, (stable_id, serial, link) in DRIVES.items()
    ]  # fmt: skip
    names = ", ".join(f'"{name}"' for name in HOST_SETTINGS)
    pools = "".join(f'\n[[pool]]\nid = "{slug}"\ndrives = {list(drives)}\n' for slug, drives in POOLS.items())
    return policy_text(targets, writer="make lab") + f"{pools}\n[host]\nsettings = [{names}]\n"


class StorageHost:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def prepare(self, authority: Path) -> None:
        """Prepare the guest as an administrator does: server name, certificate authority. Build the wheelhouse."""
        certificate = authority.read_text()
        # update-ca-certificates takes minutes in the guest
        self._machine.run(
            "sh", "-c", f"echo '{certificate}' >>{CA_CERTIFICATES}; echo '{SERVER_ADDRESS} {NAME}' >>/etc/hosts"
        )
        if wheelhouse.built_wheelhouse() is None:
            try:
                wheelhouse.build()
            except wheelhouse.NotBuilt as error:
                raise ToolError(str(error)) from error

    def run_in_shell(self, line: str) -> str:
        """Run a line in a root shell; its output. Raises ToolError."""
        return self._machine.run("sh", "-c", line).stdout

    def write_policy(self) -> None:
        self.write(POLICY, guest_policy())

    def write(self, path: str, text: str) -> None:
        with tempfile.TemporaryFile("w+") as file:
            file.write(text)
            file.seek(0)
            self._machine.run("sh", "-c", f"umask 022; cat >{path}", stdin=file.fileno())

    # ---- its service

    def kill_worker(self) -> None:
        """SIGKILL to the worker alone; systemd restarts it."""
        self._machine.run("systemctl", "kill", "--kill-who=main", "--signal=KILL", SERVICE)

    def stop_service(self) -> None:
        self._machine.run("systemctl", "stop", SERVICE)

    def start_service(self) -> None:
        self._machine.run("systemctl", "start", SERVICE)

    def disable_restart(self) -> None:
        """Until the guest restarts, systemd does not restart a worker that ended."""
        place = f"/run/systemd/system/{SERVICE}.d"
        self._machine.run("mkdir", "-p", place)
        self.write(f"{place}/lab.conf", "[Service]\nRestart=no\n")
        self._machine.run("systemctl", "daemon-reload")

    def await_stopped(self) -> None:
        """Wait until the service has no process. Raises ToolError."""
        ended = lambda: self.run("systemctl", "show", "--property=MainPID", "--value", SERVICE).strip() == "0"  # noqa: E731
        if not await_condition(ended, limit_s=END_LIMIT_S):
            raise ToolError(f"{SERVICE} did not stop.")

    def enable_restart(self) -> None:
        self._machine.run("rm", "-r", f"/run/systemd/system/{SERVICE}.d")
        self._machine.run("systemctl", "daemon-reload")

    def assemble_arrays_at_start(self) -> None:
        """Restore Debian's default: from the next start, the guest assembles all arrays that it finds."""
        self._machine.run("sh", "-c", "rm -f /etc/mdadm/mdadm.conf; sync")

    def log(self) -> str:
        """The end of the service's journal."""
        return self._machine.run("journalctl", "-u", SERVICE, "-n", "40", "-o", "cat", check=False).stdout

    # ---- content of its drives, read with Debian's programs

    def left_on_drives(self) -> list[str]:
        """Signatures, arrays, volumes and mounts that exist; none if all layouts were taken down."""
        drives = [f"/dev/disk/by-id/{link or stable_id}" for stable_id, _, link in DRIVES.values()]
        found = [f"wipefs: {line}" for line in self._lines("wipefs", "--noheadings", *drives)]
        found += [f"mdstat: {line}" for line in self._lines("grep", "^md", "/proc/mdstat")]
        found += [f"dmsetup: {line}" for line in self._lines("dmsetup", "ls") if line != "No devices found"]
        found += [f"mounted: {line}" for line in self._lines("grep", "-h", "/layouts/", *self._mount_tables())]
        return found

    def _mount_tables(self) -> Sequence[str]:
        """The mount tables of the guest and of the service, which has its own."""
        main = self._machine.run("systemctl", "show", "--property=MainPID", "--value", SERVICE).stdout.strip()
        return ("/proc/1/mounts", *([f"/proc/{main}/mounts"] if main not in ("", "0") else []))

    def _lines(self, *command: str) -> list[str]:
        return self._machine.run(*command, check=False).stdout.splitlines()

    def run(self, *command: str) -> str:
        return self._machine.run(*command).stdout
