"""A storage server of the campaign: a worker in a network of its own, a relay, a loop device, small disks."""

import json
import os
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path

from dev.faults import disks
from dev.faults.clock import Clock
from dev.faults.disks import MIB, SmallDisk
from dev.faults.network import Network
from dev.stack import loop_device, processes
from dev.stack.policy import PolicyTarget, policy_text
from dev.stack.processes import Command
from dev.stack.state import REPOSITORY, State

SETTINGS = ("scheduler", "read_ahead_kb", "nr_requests")
DRIVE_BYTES = 32 * MIB
SPOOL_BYTES = 96 * MIB  # the worker keeps 32 MiB of it free
SCRATCH_BYTES = 64 * MIB
RELAY = Path(__file__).with_name("relay.py")
FIO = """#!/bin/sh
# Notes under which attempt it was started, then becomes fio.
echo "$SWEETSPOT_SCOPE" >>"{log}"
exec "{fio}" "$@"
"""


class LabHost:
    def __init__(self, state: State, network: Network, number: int, clock: Clock, *, fio: str) -> None:
        self.number = number
        self.slug = f"host{number + 1}"
        self.clock = clock
        self._lab = state
        self._network = network
        self._root = state.root / self.slug
        self._root.mkdir(mode=0o755, exist_ok=True)
        self.fio_log = self._root / "fio.log"
        self._orders = self._root / "relay.json"
        self.state_folder = self._root / "state"
        self.spool_disk: SmallDisk | None = None
        self.scratch_disk: SmallDisk | None = None
        self.device = ""
        self.before: Mapping[str, str] = {}
        self._write_fio(fio)

    @property
    def worker(self) -> str:
        return f"worker-{self.slug}"

    @property
    def relay(self) -> str:
        return f"relay-{self.slug}"

    @property
    def scratch(self) -> Path:
        return self._root / "scratch"

    def prepare(self, *, root: bool) -> None:
        """Its disks, its policy, and how its drive is set before anybody touches it."""
        if root:
            self.spool_disk = disks.memory_disk(self.state_folder, SPOOL_BYTES)
            self.scratch_disk = disks.file_disk(self.scratch, self._root / "scratch.img", SCRATCH_BYTES)
            self.device = disks.loop_device(self._root / "drive.img", DRIVE_BYTES)
            self._tune_drive()
        self.scratch.mkdir(mode=0o755, exist_ok=True)
        policy = self._root / "policy.toml"
        policy.write_text(policy_text(self._targets()))
        policy.chmod(0o600)

    def _tune_drive(self) -> None:
        """Values that are nobody's default, so that putting back a default is seen."""
        queue = Path("/sys/block") / Path(self.device).name / "queue"
        (queue / "read_ahead_kb").write_text(str(192 + 64 * self.number))
        self.before = disks.queue_settings(self.device)

    def _targets(self) -> tuple[PolicyTarget, ...]:
        scratch = PolicyTarget(id="scratch", kind="directory", path=str(self.scratch))
        if not self.device:
            return (scratch,)
        return scratch, PolicyTarget(
            id="drive", kind="block", path=self.device, stable_id=loop_device.stable_id(self.device), destroy=True,
            settings=SETTINGS,
        )  # fmt: skip

    def _write_fio(self, fio: str) -> None:
        folder = self._root / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "fio"
        program.write_text(FIO.format(log=self.fio_log, fio=fio))
        program.chmod(0o755)
        self.fio_log.touch()

    # ---- its processes

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SWEETSPOT_", "DJANGO_"))}
        path = f"{self._root / 'bin'}:{own.get('PATH', os.defpath)}"
        return {**own, **self.clock.environment, "PATH": path, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}

    def _worker_command(self, *arguments: str) -> tuple[str, ...]:
        paths = ("--state", str(self.state_folder), "--policy", str(self._root / "policy.toml"))
        return self._network.inside(self.number, (sys.executable, "-m", "worker", *paths, *arguments))

    def start_worker(self) -> None:
        command = self._worker_command("start")
        processes.start(self._lab, Command(self.worker, command, self._environment(), REPOSITORY))

    def start_relay(self, *rules: str) -> None:
        argv = self._network.inside(self.number, (sys.executable, str(RELAY), str(self._orders), *rules))
        processes.start(self._lab, Command(self.relay, argv, dict(os.environ), REPOSITORY))

    def enrol(self, server: str, token: str) -> None:
        processes.run(
            self._worker_command("enrol", "--server", server, "--name", self.slug, "--token", "-"),
            environment=self._environment(), folder=REPOSITORY, stdin_text=token + "\n",
        )  # fmt: skip

    # ---- what is between it and the server

    def tell_relay(self, mode: str, value: float = 0.0) -> None:
        new = self._orders.with_suffix(".new")
        new.write_text(json.dumps({"mode": mode, "value": value}))
        new.replace(self._orders)

    # ---- what its own files say, read by SQL and not by the worker's code

    def ask(self, database: str, query: str) -> list[tuple[object, ...]]:
        """Rows of spool.db or journal.db."""
        path = self.state_folder / database
        if not path.exists():
            return []
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5) as connection:
            return list(connection.execute(query))
