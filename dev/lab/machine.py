"""A virtual storage server under QEMU in software emulation: MegaRAID with four drives, NVMe, virtio, SAS and SATA.

The guest can connect only to the forwarded ports of the server outside; ssh reaches it through a loopback port. Changes
of its root disk are discarded at the end.
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dev.console import ToolError, step
from dev.lab import hardware, image
from dev.stack.network import await_condition, free_port
from dev.stack.processes import started_ticks

BOOT_LIMIT_S = 900.0  # on a busy machine; an idle one takes half a minute
END_LIMIT_S = 20.0
ANSWER_LIMIT_S = 60.0
KERNEL_ARGUMENTS = f"root=LABEL={image.LABEL} ro console=ttyS0 net.ifnames=0 nvme.poll_queues=1 quiet loglevel=3"
SSH_OPTIONS = (
    "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=5", "BatchMode=yes",
)  # fmt: skip
# The guest connects to this machine at this address. Each connection has a process of its own.
SERVER_ADDRESS = "10.0.2.100"
PORT_FORWARD = Path(__file__).with_name("port_forward.py")


@dataclass
class Machine:
    """A guest. A directory holds at most one running guest."""

    directory: Path
    cpus: int = 2
    memory_mib: int = 2048
    port: int = 0
    ports_file: Path | None = None  # JSON, name -> port on this machine's loopback
    forwarded_ports: Mapping[int, str] = field(default_factory=dict)  # port of SERVER_ADDRESS -> name in `ports_file`
    _pid: int = 0
    _ticks: int | None = None
    drives: Path = field(init=False)

    def __post_init__(self) -> None:
        self.drives = self.directory / "drives"

    def up(self) -> None:
        """Build the guest if needed, and boot it."""
        image.build(self.directory)
        image.install_packages()
        with step("booting the guest"):
            self.boot()

    def boot(self) -> None:
        """Start the guest and wait until it answers. Raises ToolError with the end of its console."""
        self.port = self.port or free_port()
        self.drives.mkdir(parents=True, exist_ok=True)
        pid_file = self.directory / "pid"
        pid_file.unlink(missing_ok=True)
        done = subprocess.run(self.command(pid_file), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"QEMU did not start: {done.stderr.strip()}")
        self._pid = int(pid_file.read_text())
        self._ticks = started_ticks(self._pid)
        self._await_boot("")

    def reset(self) -> None:
        """Cut and restore the power: unwritten data are lost, the drives keep the rest."""
        before = self.boot_id()
        self.monitor("system_reset")
        self._await_boot(before)

    def reboot(self) -> None:
        """Restart the guest orderly."""
        before = self.boot_id()
        self.run("systemctl", "reboot", check=False)
        self._await_boot(before)

    def boot_id(self) -> str:
        """The kernel's boot id, "" while the guest does not answer."""
        return self.run("cat", "/proc/sys/kernel/random/boot_id", check=False, limit_s=ANSWER_LIMIT_S).stdout.strip()

    def _await_boot(self, before: str) -> None:
        over = await_condition(lambda: not self.alive or self.boot_id() not in ("", before), limit_s=BOOT_LIMIT_S)
        if not over or not self.alive:
            raise ToolError(f"The guest does not answer. The end of its console:\n{self._console()}")

    @property
    def alive(self) -> bool:
        """Whether the started process still runs. The start time is compared because pids are reused."""
        return self._ticks is not None and started_ticks(self._pid) == self._ticks

    def end(self) -> None:
        """Stop the guest and delete its drives."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                if self.alive:
                    os.kill(self._pid, number)
            await_condition(lambda: not self.alive, limit_s=END_LIMIT_S)
        for drive in self.drives.glob("*.raw"):
            drive.unlink()

    def run(
        self, *command: str, check: bool = True, stdin: int | None = None, limit_s: float = 900
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the guest. Raises ToolError if it fails and `check` is set."""
        try:
            done = subprocess.run(
                (*self._ssh(), shlex.join(command)),
                capture_output=True, text=True, check=False, timeout=limit_s, stdin=stdin or subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            output = f"did not end within {limit_s:.0f} s"
            done = subprocess.CompletedProcess(command, 255, "", output)
        if check and done.returncode:
            output = (done.stderr or done.stdout).strip()[-3000:]
            raise ToolError(f"In the guest, {shlex.join(command)} ended with exit status {done.returncode}:\n{output}")
        return done

    def run_visibly(self, *command: str) -> int:
        """Run a command in the guest with its output on this terminal; its exit status."""
        return subprocess.run((*self._ssh(), shlex.join(command)), check=False, stdin=subprocess.DEVNULL).returncode

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Start a command in the guest; the caller reads its output while it runs."""
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
        """Send a command to QEMU's monitor, for example `device_del`."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self.directory / "monitor"))
            _until_prompt(connection)
            connection.sendall(f"{command}\n".encode())
            _until_prompt(connection)

    def remove_drive(self) -> None:
        """Remove the drive without notice to the guest."""
        self.monitor(f"device_del {hardware.REMOVABLE}")

    def insert_drive(self) -> None:
        """Insert the drive again, with its data."""
        self.monitor(f"drive_add 0 {hardware.backend(hardware.REMOVABLE_DRIVE, self.drives)}")
        self.monitor(f"device_add {hardware.REMOVABLE_DEVICE}")

    def _ssh(self) -> Sequence[str]:
        options = [argument for option in SSH_OPTIONS for argument in ("-o", option)]
        return ("ssh", "-i", str(self.directory / "key"), "-p", str(self.port), *options, "root@127.0.0.1")

    def _forwarding(self) -> str:
        forward = f"{sys.executable} -S -E {PORT_FORWARD} {self.ports_file}"
        return "".join(
            f",guestfwd=tcp:{SERVER_ADDRESS}:{port}-cmd:{forward} {name}" for port, name in self.forwarded_ports.items()
        )

    def _console(self) -> str:
        with suppress(OSError):
            return "\n".join((self.directory / "console").read_text(errors="replace").splitlines()[-15:])
        return "(nothing)"

    def command(self, pid_file: Path) -> Sequence[str]:
        """QEMU with all devices; creates the files of the drives."""
        at = self.directory
        return (
            "qemu-system-x86_64", "-name", "sweetspot-lab", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-smp", str(self.cpus), "-m", str(self.memory_mib), "-nodefaults", "-display", "none",
            "-kernel", str(at / "vmlinuz"), "-initrd", str(at / "initrd.img"), "-append", KERNEL_ARGUMENTS,
            "-serial", f"file:{at / 'console'}", "-monitor", f"unix:{at / 'monitor'},server=on,wait=off",
            "-drive", f"if=none,id=root,format=raw,file={at / 'root.img'},snapshot=on",
            "-device", "virtio-blk-pci,drive=root,serial=LABROOT",
            "-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22{self._forwarding()}",
            "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
            *hardware.arguments(self.drives), "-pidfile", str(pid_file), "-daemonize",
        )  # fmt: skip


def _until_prompt(connection: socket.socket) -> None:
    said = b""
    while not said.rstrip().endswith(b"(qemu)"):
        if not (more := connection.recv(4096)):
            return
        said += more
