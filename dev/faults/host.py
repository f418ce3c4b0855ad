"""A storage server of the campaign: a worker in its own network, a proxy, a loop device, small disks."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dev.faults import disks
from dev.faults.clock import Clock
from dev.faults.controller import RaidController
from dev.faults.disks import SmallDisk
from dev.faults.network import Network
from dev.faults.partitioned_drive import PartitionedDrive
from dev.stack import loop_device, processes
from dev.stack.loop_device import MIB
from dev.stack.policy import PolicyTarget, policy_text
from dev.stack.processes import Command
from dev.stack.state import REPOSITORY, State
from worker.kernel.signatures import identity

SETTINGS = ("scheduler", "read_ahead_kb", "nr_requests")
CONTROLLER_SETTING = "controller.write_cache"
PARTITION = "partition"  # id of its target
PRECIOUS = bytes(range(256)) * 4096
DRIVE_BYTES = 32 * MIB
SPOOL_BYTES = 96 * MIB  # the worker keeps 32 MiB of it free
SCRATCH_BYTES = 384 * MIB  # a new PostgreSQL needs some 100
PROXY = Path(__file__).with_name("proxy.py")
WORKER = Path(__file__).with_name("behind_controller.py")
HDPARM = """#!/bin/sh
# Answers for a drive whose password is the content of a file, and removes it with the right password.
case "$*" in
  *--security-disable*) [ "$4" = "$(cat "{password}" 2>/dev/null)" ] && rm -f "{password}" ;;
esac
if [ -e "{password}" ]; then not=; else not=not; fi
printf 'Security:\\n\\t\\tsupported\\n\\t%s\\tenabled\\n\\tnot\\tlocked\\n\\tnot\\tfrozen\\n' "$not"
"""
FIO = """#!/bin/sh
# Logs the attempt of each start, then becomes fio.
echo "$SWEETSPOT_SCOPE" >>"{log}"
exec "{fio}" "$@"
"""


class StorageHost:
    def __init__(self, state: State, network: Network, number: int, clock: Clock, *, fio: str) -> None:
        self.number = number
        self.slug = f"host{number + 1}"
        self.worker = f"worker-{self.slug}"
        self.proxy = f"proxy-{self.slug}"
        self.clock = clock
        self._state = state
        self._network = network
        self._root = state.root / self.slug
        self._root.mkdir(mode=0o755, exist_ok=True)
        self.fio_log = self._root / "fio.log"
        self.drive_password = self._root / "drive.password"
        self.mount_point = self._root / "mount"
        self.image = self._root / "drive.img"
        self.server_keys: Mapping[str, str] = {}
        self._proxy_mode = self._root / "proxy.json"
        self.scratch = self._root / "scratch"
        self.state_folder = self._root / "state"
        self.precious = self._root / "precious"  # of somebody else
        self.spool_disk: SmallDisk | None = None
        self.scratch_disk: SmallDisk | None = None
        self.device = ""
        self.initial_settings: Mapping[str, str] = {}
        self._write_programs(fio)
        self.controller = RaidController(self._root / "controller", self._root / "bin")

    def prepare(self) -> None:
        """Create its disks and its policy, and record the initial settings of its drive."""
        self.spool_disk = disks.memory_disk(self.state_folder, SPOOL_BYTES)
        self.scratch_disk = disks.file_disk(self.scratch, self._root / "scratch.img", SCRATCH_BYTES)
        self.device = loop_device.attach(self.image, DRIVE_BYTES, direct_io=False)
        processes.run(["mkfs.ext4", "-q", "-F", self.device])  # so that it can be mounted
        self.controller.add(self.device)
        self.partitioned = PartitionedDrive(self._root / "partitioned.img")
        self.precious.mkdir()
        (self.precious / "data").write_bytes(PRECIOUS)
        self._set_read_ahead()
        self.initial_settings = disks.queue_settings(self.device)
        self.scratch.mkdir(mode=0o755, exist_ok=True)
        policy = self._root / "policy.toml"
        policy.write_text(policy_text(self._targets(), writer="make faults"))
        policy.chmod(0o600)

    def _set_read_ahead(self) -> None:
        """A value that is no default, so that the check finds a setting restored to the default."""
        queue = Path("/sys/block") / Path(self.device).name / "queue"
        (queue / "read_ahead_kb").write_text(str(192 + 64 * self.number))

    def _targets(self) -> tuple[PolicyTarget, ...]:
        scratch = PolicyTarget(id="scratch", kind="directory", path=str(self.scratch))
        return scratch, PolicyTarget(
            id="drive", kind="block", path=self.device, stable_id=loop_device.stable_id(self.device), destroy=True,
            destroy_signatures=("ext4",), settings=(*SETTINGS, CONTROLLER_SETTING),
        ), PolicyTarget(
            id=PARTITION, kind="block", path=self.partitioned.partition, destroy=True,
            stable_id=identity(Path(self.partitioned.partition).name), settings=(*SETTINGS, CONTROLLER_SETTING),
        )  # fmt: skip

    def _write_programs(self, fio: str) -> None:
        folder = self._root / "bin"
        folder.mkdir(exist_ok=True)
        texts = {"fio": FIO.format(log=self.fio_log, fio=fio), "hdparm": HDPARM.format(password=self.drive_password)}
        for name, text in texts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self.fio_log.touch()

    # ---- its processes

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SWEETSPOT_", "DJANGO_"))}
        path = f"{self._root / 'bin'}:{own.get('PATH', os.defpath)}"
        return {**own, **self.clock.environment, "PATH": path, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}

    def _worker_command(self, *arguments: str) -> tuple[str, ...]:
        paths = ("--state", str(self.state_folder), "--policy", str(self._root / "policy.toml"))
        return self._network.inside(
            self.number, (sys.executable, "-P", str(WORKER), str(self.controller.sys), *paths, *arguments)
        )

    def start_worker(self) -> None:
        command = self._worker_command("start")
        processes.start(self._state, Command(self.worker, command, self._environment(), REPOSITORY))

    def second_worker(self, *, sees_the_first: bool) -> "subprocess.Popen[bytes]":
        """A worker with a copy of the state directory. `sees_the_first`: it has the same /run, so it sees its locks."""
        copy = self._root / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        # By another process: one that closes a file of a database loses its locks on it. Files may vanish meanwhile.
        subprocess.run(["cp", "-a", str(self.state_folder), str(copy)], check=False, capture_output=True)
        for left_out in (disks.FILLER, "journal.reserve"):
            (copy / left_out).unlink(missing_ok=True)
        command = [part if part != str(self.state_folder) else str(copy) for part in self._worker_command("start")]
        if not sees_the_first:
            command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh", *command]
        return subprocess.Popen(
            command, cwd=REPOSITORY, env=self._environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def start_proxy(self, *rules: str) -> None:
        argv = self._network.inside(self.number, (sys.executable, str(PROXY), str(self._proxy_mode), *rules))
        processes.start(self._state, Command(self.proxy, argv, dict(os.environ), REPOSITORY))

    def enrol(self, server: str, token: str) -> None:
        processes.run(
            self._worker_command("enrol", "--server", server, "--name", self.slug, "--token", "-"),
            environment=self._environment(), folder=REPOSITORY, stdin_text=token + "\n",
        )  # fmt: skip
        self.server_keys = self.trusted_keys()

    def trusted_keys(self) -> Mapping[str, str]:
        """The server's keys in the worker's enrolment."""
        keys: Mapping[str, str] = json.loads((self.state_folder / "worker.json").read_text())["public_keys"]
        return keys

    def set_proxy_mode(self, mode: str, value: float = 0.0) -> None:
        """See dev/faults/proxy.py."""
        new = self._proxy_mode.with_suffix(".new")
        new.write_text(json.dumps({"mode": mode, "value": value}))
        new.replace(self._proxy_mode)
