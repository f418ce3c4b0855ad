"""A storage server under QEMU, all in software: MegaRAID with four drives of two models, NVMe, virtio and SATA.

It reaches nothing but the loopback port that its ssh is on; its root disk is thrown away when it
ends. The drives' models, serials and WWNs are made up, and every serial begins with LAB: that is
what the tests of hardware look for before they touch a drive.
"""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from webapp.local.console import Trouble, step
from webapp.local.lab import image
from webapp.local.processes import started_ticks

DRIVE_BYTES = 2**30
BOOT_LIMIT_S = 900.0  # a busy machine; a quiet one takes half a minute
END_LIMIT_S = 20.0
KERNEL_ARGUMENTS = f"root=LABEL={image.LABEL} ro console=ttyS0 net.ifnames=0 quiet loglevel=3"
SSH_OPTIONS = (
    "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=5", "BatchMode=yes",
)  # fmt: skip


# The drive that is pulled out and put back while the machine runs.
PULLED, PULLED_SERIAL = "pulled", "LABVS0"
PULLED_DEVICE = (
    f"scsi-hd,id={PULLED},bus=virtio.0,drive=virtio0,vendor=LAB,product=VIRTSSD,serial={PULLED_SERIAL},rotation_rate=1"
)


@dataclass
class Machine:
    """One at a time in a directory."""

    directory: Path
    cpus: int = 2
    memory_mib: int = 2048
    port: int = 0
    _pid: int = 0
    _ticks: int | None = None
    drives: Path = field(init=False)

    def __post_init__(self) -> None:
        self.drives = self.directory / "drives"

    def up(self) -> None:
        """Built where it is not yet, and booted."""
        image.build(self.directory)
        image.needed_programs()
        with step("the guest starts"):
            self.boot()

    def boot(self) -> None:
        """Start it and wait until it answers. Raises Trouble with the console's last words."""
        self.port = self.port or _free_port()
        self.drives.mkdir(parents=True, exist_ok=True)
        pid_file = self.directory / "pid"
        pid_file.unlink(missing_ok=True)
        done = subprocess.run(self._command(pid_file), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Trouble(f"QEMU did not start: {done.stderr.strip()}")
        self._pid = int(pid_file.read_text())
        self._ticks = started_ticks(self._pid)
        until = time.monotonic() + BOOT_LIMIT_S
        while self.run("true", check=False).returncode:
            if not self.alive or time.monotonic() > until:
                raise Trouble(f"The guest does not answer. Its console ends with:\n{self._console()}")
            time.sleep(0.5)

    @property
    def alive(self) -> bool:
        """Whether the process that was started is there: its pid alone may belong to somebody else by now."""
        return self._ticks is not None and started_ticks(self._pid) == self._ticks

    def end(self) -> None:
        """By its pid. What its drives hold is thrown away."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + END_LIMIT_S
            with suppress(ProcessLookupError):
                if self.alive:
                    os.kill(self._pid, number)
            while self.alive and time.monotonic() < until:
                time.sleep(0.1)
        for drive in self.drives.glob("*.raw"):
            drive.unlink()

    def run(
        self, *command: str, check: bool = True, stdin: int | None = None, limit_s: float = 900
    ) -> subprocess.CompletedProcess[str]:
        """A command in the guest, its words one by one. Raises Trouble where it fails, unless that is asked for."""
        done = subprocess.run(
            (*self._ssh(), shlex.join(command)),
            capture_output=True, text=True, check=False, timeout=limit_s, stdin=stdin or subprocess.DEVNULL,
        )  # fmt: skip
        if check and done.returncode:
            words = (done.stderr or done.stdout).strip()[-3000:]
            raise Trouble(f"In the guest, {shlex.join(command)} ended with exit status {done.returncode}:\n{words}")
        return done

    def shows(self, *command: str) -> int:
        """A command in the guest whose output is this terminal's; its exit status."""
        return subprocess.run((*self._ssh(), shlex.join(command)), check=False, stdin=subprocess.DEVNULL).returncode

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """A command in the guest that is read while it runs; `with` it."""
        return subprocess.Popen(
            (*self._ssh(), shlex.join(command)), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def ssh_line(self) -> str:
        return shlex.join(self._ssh())

    def monitor(self, command: str) -> None:
        """A command for QEMU itself, such as `device_del`: what a hand at the server would do."""
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(10)
            door.connect(str(self.directory / "monitor"))
            _until_prompt(door)
            door.sendall(f"{command}\n".encode())
            _until_prompt(door)

    def pull(self) -> None:
        """Pull the drive out, without a word to the guest."""
        self.monitor(f"device_del {PULLED}")

    def plug(self) -> None:
        """Put it back, as empty or full as it was."""
        self.monitor(f"drive_add 0 {_backend('virtio0', self.drives / 'virtio0.raw')}")
        self.monitor(f"device_add {PULLED_DEVICE}")

    def _ssh(self) -> Sequence[str]:
        options = [word for option in SSH_OPTIONS for word in ("-o", option)]
        return ("ssh", "-i", str(self.directory / "key"), "-p", str(self.port), *options, "root@127.0.0.1")

    def _console(self) -> str:
        with suppress(OSError):
            return "\n".join((self.directory / "console").read_text(errors="replace").splitlines()[-15:])
        return "(nothing)"

    def _command(self, pid_file: Path) -> Sequence[str]:
        at = self.directory
        return (
            "qemu-system-x86_64", "-name", "sweetspot-lab", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-smp", str(self.cpus), "-m", str(self.memory_mib), "-nodefaults", "-display", "none", "-no-reboot",
            "-kernel", str(at / "vmlinuz"), "-initrd", str(at / "initrd.img"), "-append", KERNEL_ARGUMENTS,
            "-serial", f"file:{at / 'console'}", "-monitor", f"unix:{at / 'monitor'},server=on,wait=off",
            "-drive", f"if=none,id=root,format=raw,file={at / 'root.img'},snapshot=on",
            "-device", "virtio-blk-pci,drive=root,serial=LABROOT",
            "-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22",
            "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
            *self._hardware(), "-pidfile", str(pid_file), "-daemonize",
        )  # fmt: skip

    def _hardware(self) -> Sequence[str]:
        words = [
            "-device", "pcie-root-port,id=slot1,chassis=1,slot=1,x-speed=5,x-width=8",
            "-device", "pcie-root-port,id=slot2,chassis=2,slot=2,x-speed=8,x-width=4",
            "-device", "pcie-root-port,id=slot3,chassis=3,slot=3,x-speed=8,x-width=4",
            "-device", "megasas-gen2,id=raid,bus=slot1,hba_serial=LABRAID1",
        ]  # fmt: skip
        for number in range(4):
            words += [*self._drive(f"sas{number}"), "-device", _sas_drive(number)]
        for number in range(2):
            block = 512 if number == 0 else 4096
            words += [
                *self._drive(f"nvme{number}"),
                "-device", f"nvme,id=nvme{number},bus=slot{number + 2},serial=LABNVME{number},max_ioqpairs=2",
                "-device", f"nvme-ns,bus=nvme{number},drive=nvme{number},nsid=1,logical_block_size={block},"
                "physical_block_size=4096",
            ]  # fmt: skip
        return (
            *words,
            *self._drive("virtio0"), "-device", "virtio-scsi-pci,id=virtio",
            "-device", PULLED_DEVICE,
            *self._drive("hdd0"), "-device", "mptsas1068,id=hba",
            "-device", "scsi-hd,bus=hba.0,scsi-id=0,drive=hdd0,vendor=SEAGATE,product=ST300MM0006,ver=LS08,"
            "serial=LABHDD0,rotation_rate=10000,wwn=0x5000c50000000001",
            *self._drive("sata0"),
            "-device", "ide-hd,bus=ide.0,drive=sata0,model=LAB SATA SSD,serial=LABSATA0,rotation_rate=1,ver=F1",
        )  # fmt: skip

    def _drive(self, name: str) -> Sequence[str]:
        """A new, empty drive, sparse on this machine's disk."""
        path = self.drives / f"{name}.raw"
        with path.open("wb") as file:
            file.truncate(DRIVE_BYTES)
        return ("-drive", _backend(name, path))


def _backend(name: str, path: Path) -> str:
    return f"if=none,id={name},format=raw,file={path},cache=writeback,discard=unmap"


def _sas_drive(number: int) -> str:
    """Two drives each of an Intel and of a Samsung model, as they stand behind the controller."""
    vendor, product, version = ("INTEL", "SSDSC2BB300G4", "D201") if number < 2 else ("SAMSUNG", "MZ7KM240HAGR", "GXM1")
    return (
        f"scsi-hd,id=bay{number},bus=raid.0,scsi-id={number},drive=sas{number},vendor={vendor},product={product},"
        f"ver={version},serial=LAB{vendor[:3]}{number:04d},rotation_rate=1,wwn=0x50025388{number:08x},"
        "physical_block_size=4096"
    )


def _until_prompt(door: socket.socket) -> None:
    said = b""
    while not said.rstrip().endswith(b"(qemu)"):
        if not (more := door.recv(4096)):
            return
        said += more


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])
