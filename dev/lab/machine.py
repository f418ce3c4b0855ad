"""A storage server under QEMU, all in software: MegaRAID with four drives of two models, NVMe, virtio and SATA.

It reaches nothing but what it is given of the server outside, and is reached by the loopback port that its ssh is on;
its root disk is thrown away when it ends.
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dev.console import ToolError, step
from dev.lab import hardware, image
from dev.stack.processes import started_ticks

BOOT_LIMIT_S = 900.0  # a busy machine; a quiet one takes half a minute
END_LIMIT_S = 20.0
ANSWER_LIMIT_S = 60.0
KERNEL_ARGUMENTS = f"root=LABEL={image.LABEL} ro console=ttyS0 net.ifnames=0 quiet loglevel=3"
SSH_OPTIONS = (
    "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=5", "BatchMode=yes",
)  # fmt: skip
# What the guest sees of this machine: these ports of this address, each connection through a process of its own.
OUTSIDE = "10.0.2.100"
RELAY = Path(__file__).with_name("relay.py")


@dataclass
class Machine:
    """One at a time in a directory."""

    directory: Path
    cpus: int = 2
    memory_mib: int = 2048
    port: int = 0
    ports_file: Path | None = None  # JSON, name -> port on this machine's loopback
    doors: Mapping[int, str] = field(default_factory=dict)  # port of OUTSIDE -> name in that file
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
        """Start it and wait until it answers. Raises ToolError with the console's last words."""
        self.port = self.port or _free_port()
        self.drives.mkdir(parents=True, exist_ok=True)
        pid_file = self.directory / "pid"
        pid_file.unlink(missing_ok=True)
        done = subprocess.run(self._command(pid_file), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"QEMU did not start: {done.stderr.strip()}")
        self._pid = int(pid_file.read_text())
        self._ticks = started_ticks(self._pid)
        self._await_boot("")

    def reset(self) -> None:
        """As if its power were cut and came back: what it had not written is lost, its drives stay."""
        before = self.boot_id()
        self.monitor("system_reset")
        self._await_boot(before)

    def reboot(self) -> None:
        """As its administrator would."""
        before = self.boot_id()
        self.run("systemctl", "reboot", check=False)
        self._await_boot(before)

    def boot_id(self) -> str:
        """ "" while it does not answer."""
        return self.run("cat", "/proc/sys/kernel/random/boot_id", check=False, limit_s=ANSWER_LIMIT_S).stdout.strip()

    def _await_boot(self, before: str) -> None:
        until = time.monotonic() + BOOT_LIMIT_S
        while self.boot_id() in ("", before):
            if not self.alive or time.monotonic() > until:
                raise ToolError(f"The guest does not answer. Its console ends with:\n{self._console()}")
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
        """A command in the guest, its words one by one. Raises ToolError where it fails, unless that is asked for."""
        try:
            done = subprocess.run(
                (*self._ssh(), shlex.join(command)),
                capture_output=True, text=True, check=False, timeout=limit_s, stdin=stdin or subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            words = f"did not end within {limit_s:.0f} s"
            done = subprocess.CompletedProcess(command, 255, "", words)
        if check and done.returncode:
            words = (done.stderr or done.stdout).strip()[-3000:]
            raise ToolError(f"In the guest, {shlex.join(command)} ended with exit status {done.returncode}:\n{words}")
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
        self.monitor(f"device_del {hardware.PULLED}")

    def plug(self) -> None:
        """Put it back, as empty or full as it was."""
        self.monitor(f"drive_add 0 {hardware.backend(hardware.PULLED_DRIVE, self.drives)}")
        self.monitor(f"device_add {hardware.PULLED_DEVICE}")

    def _ssh(self) -> Sequence[str]:
        options = [word for option in SSH_OPTIONS for word in ("-o", option)]
        return ("ssh", "-i", str(self.directory / "key"), "-p", str(self.port), *options, "root@127.0.0.1")

    def _ways_out(self) -> str:
        relay = f"{sys.executable} -S -E {RELAY} {self.ports_file}"
        return "".join(f",guestfwd=tcp:{OUTSIDE}:{port}-cmd:{relay} {name}" for port, name in self.doors.items())

    def _console(self) -> str:
        with suppress(OSError):
            return "\n".join((self.directory / "console").read_text(errors="replace").splitlines()[-15:])
        return "(nothing)"

    def _command(self, pid_file: Path) -> Sequence[str]:
        at = self.directory
        return (
            "qemu-system-x86_64", "-name", "sweetspot-lab", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-smp", str(self.cpus), "-m", str(self.memory_mib), "-nodefaults", "-display", "none",
            "-kernel", str(at / "vmlinuz"), "-initrd", str(at / "initrd.img"), "-append", KERNEL_ARGUMENTS,
            "-serial", f"file:{at / 'console'}", "-monitor", f"unix:{at / 'monitor'},server=on,wait=off",
            "-drive", f"if=none,id=root,format=raw,file={at / 'root.img'},snapshot=on",
            "-device", "virtio-blk-pci,drive=root,serial=LABROOT",
            "-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22{self._ways_out()}",
            "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
            *hardware.words(self.drives), "-pidfile", str(pid_file), "-daemonize",
        )  # fmt: skip


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
