"""The guest as a storage server of Sweetspot: the line of “Add host” pasted into it, its policy, its service."""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from dev.console import ToolError
from dev.lab.machine import OUTSIDE, Machine
from dev.lab.server import NAME
from dev.stack.network import await_condition
from dev.stack.policy import PolicyTarget, policy_text

SERVICE = "sweetspot-worker.service"
POLICY = "/etc/sweetspot-worker/policy.toml"
END_LIMIT_S = 60.0
WHEELS = "/opt/wheels"
BESIDES = ("async-timeout",)  # redis asks for it where Python is older than 3.11.3, as the guest's is
TRUSTED = "/etc/ssl/certs/ca-certificates.crt"
POOL = "bays"
BAYS = ("bay0", "bay1", "bay2", "bay3")
NVME, SATA = "nvme0", "sata0"
# Those of the lab's drives that a plan may use: stable id, serial, and where the link under by-id is called otherwise.
DRIVES = {
    "bay0": ("wwn-0x5002538800000000", "LABINT0000", ""),
    "bay1": ("wwn-0x5002538800000001", "LABINT0001", ""),
    "bay2": ("wwn-0x5002538800000002", "LABSAM0002", ""),
    "bay3": ("wwn-0x5002538800000003", "LABSAM0003", ""),
    NVME: ("nvme-QEMU_NVMe_Ctrl_LABNVME0_1", "LABNVME0", ""),
    SATA: ("sata-LAB_SATA_SSD_LABSATA0", "LABSATA0", "ata-LAB_SATA_SSD_LABSATA0"),
}
SETTINGS = ("*", "write_cache", "drive_write_cache", "irq_affinity", "nvme.write_cache", "nvme.power_state")
HOST_SETTINGS = (
    "vm.dirty_ratio", "vm.dirty_bytes", "vm.dirty_background_ratio", "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs", "transparent_hugepage",
)  # fmt: skip


def serials(*slugs: str) -> tuple[str, ...]:
    return tuple(DRIVES[slug][1] for slug in slugs)


def guest_policy() -> str:
    """Every drive may be destroyed, four of them form a pool, and every setting of them may be changed."""
    targets = [
        PolicyTarget(
            id=slug, kind="block", path=f"/dev/disk/by-id/{link or stable_id}", stable_id=stable_id, serial=serial,
            destroy=True, settings=SETTINGS,
        )
        for slug, (stable_id, serial, link) in DRIVES.items()
    ]  # fmt: skip
    names = ", ".join(f'"{name}"' for name in HOST_SETTINGS)
    pool = ", ".join(f'"{name}"' for name in BAYS)
    more = f'\n[[pool]]\nid = "{POOL}"\ndrives = [{pool}]\n\n[host]\nsettings = [{names}]\n'
    return policy_text(targets, writer="make lab") + more


class StorageHost:
    def __init__(self, machine: Machine, repository: Path) -> None:
        self._machine = machine
        self._repository = repository

    def prepare(self, authority: Path) -> None:
        """What an administrator has seen to before: the server's name and authority, and a place for pip's packages."""
        certificate = authority.read_text()
        # as update-ca-certificates would, which takes minutes here for the certificates of all the others
        self._machine.run("sh", "-c", f"echo '{certificate}' >>{TRUSTED}; echo '{OUTSIDE} {NAME}' >>/etc/hosts")
        self._write("/etc/pip.conf", f"[global]\nno-index = true\nfind-links = {WHEELS}\n")
        with tempfile.TemporaryDirectory() as directory:
            tar = Path(directory) / "wheels.tar"
            with tarfile.open(tar, "w") as packed:
                packed.add(self._wheels(), "wheels")
            with tar.open("rb") as file:
                self._machine.run("tar", "-C", str(Path(WHEELS).parent), "-xf", "-", stdin=file.fileno())

    def _wheels(self) -> Path:
        """The worker's packages as pip gets them, fetched once for each list of versions."""
        project = tomllib.loads((self._repository / "worker/pyproject.toml").read_text())["project"]
        needs = [*project["dependencies"], *BESIDES]
        versions = self._repository / ".ci/constraints.txt"
        digest = hashlib.sha256("\n".join([*needs, versions.read_text()]).encode()).hexdigest()[:12]
        place = self._machine.directory / f"wheels-{digest}"
        if not place.exists():
            part = place.with_suffix(".part")
            command = (
                sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                "--only-binary=:all:", "--dest", str(part), "--constraint", str(versions), *needs,
            )  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ToolError(f"The worker's packages could not be fetched: {done.stderr.strip()[-1500:]}")
            part.rename(place)
        return place

    def paste(self, line: str) -> str:
        """A line into a root shell; what it said. Raises ToolError."""
        return self._machine.run("sh", "-c", line).stdout

    def allow(self) -> None:
        self._write(POLICY, guest_policy())

    def _write(self, path: str, text: str) -> None:
        with tempfile.TemporaryFile("w+") as file:
            file.write(text)
            file.seek(0)
            self._machine.run("sh", "-c", f"umask 022; cat >{path}", stdin=file.fileno())

    # ---- its service

    def kill_worker(self) -> None:
        """SIGKILL to the worker alone; systemd starts it again."""
        self._machine.run("systemctl", "kill", "--kill-who=main", "--signal=KILL", SERVICE)

    def stop_service(self) -> None:
        self._machine.run("systemctl", "stop", SERVICE)

    def start_service(self) -> None:
        self._machine.run("systemctl", "start", SERVICE)

    def keep_ended(self) -> None:
        """From now until the next restart of the guest systemd does not start a worker that ended again."""
        place = f"/run/systemd/system/{SERVICE}.d"
        self._machine.run("mkdir", "-p", place)
        self._write(f"{place}/lab.conf", "[Service]\nRestart=no\n")
        self._machine.run("systemctl", "daemon-reload")

    def until_ended(self) -> None:
        """Nothing of the service is left."""
        ended = lambda: self.run("systemctl", "show", "--property=MainPID", "--value", SERVICE).strip() == "0"  # noqa: E731
        if not await_condition(ended, limit_s=END_LIMIT_S):
            raise ToolError(f"{SERVICE} does not end.")

    def restart_again(self) -> None:
        self._machine.run("rm", "-r", f"/run/systemd/system/{SERVICE}.d")
        self._machine.run("systemctl", "daemon-reload")

    def assemble_what_is_found(self) -> None:
        """From the next start on the guest assembles arrays that it finds, as Debian does unless it is told not to."""
        self._machine.run("sh", "-c", "rm -f /etc/mdadm/mdadm.conf; sync")

    def log(self) -> str:
        """The end of the service's own journal."""
        return self._machine.run("journalctl", "-u", SERVICE, "-n", "40", "-o", "cat", check=False).stdout

    # ---- what lies on its drives, said by Debian's own programs

    def left_on_drives(self) -> list[str]:
        """Signatures, arrays, volumes and mounts that are there: nothing, where all was taken down."""
        drives = [f"/dev/disk/by-id/{link or stable_id}" for stable_id, _, link in DRIVES.values()]
        found = [f"wipefs: {line}" for line in self._lines("wipefs", "--noheadings", *drives)]
        found += [f"mdstat: {line}" for line in self._lines("grep", "^md", "/proc/mdstat")]
        found += [f"dmsetup: {line}" for line in self._lines("dmsetup", "ls") if line != "No devices found"]
        found += [f"mounted: {line}" for line in self._lines("grep", "-h", "/layouts/", *self._mount_tables())]
        return found

    def _mount_tables(self) -> Sequence[str]:
        """Of the guest, and of the service, which has one of its own."""
        main = self._machine.run("systemctl", "show", "--property=MainPID", "--value", SERVICE).stdout.strip()
        return ("/proc/1/mounts", *([f"/proc/{main}/mounts"] if main not in ("", "0") else []))

    def _lines(self, *command: str) -> list[str]:
        return self._machine.run(*command, check=False).stdout.splitlines()

    def run(self, *command: str) -> str:
        return self._machine.run(*command).stdout
