"""What is really there after a round: sysfs, /proc, cgroups, files and plain SQL; nothing of the product is asked."""

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import redis

from dev.faults.disks import queue_settings
from dev.faults.faults import broker
from dev.faults.host import LabHost
from dev.faults.installation import World
from dev.faults.queries import ATTEMPTS, FAILED_TRIALS, OUTCOMES, RULES, RUN_END, TRIAL_ATTEMPTS

# Reasons that a fault may bring about. Any other is a fault of the product.
EXPECTED_REASONS = frozenset(
    {
        "worker_died", "worker_stopped", "lease_expired", "order_expired", "fio_error", "fio_silent", "spool_full",
        "guard_no_space",
    }
)  # fmt: skip


class Witness:
    def __init__(self, world: World) -> None:
        self._world = world

    def leftovers(self, run: str) -> list[str]:
        """What is not yet as it must be, and may still come to it, in words."""
        try:
            return [
                *self._database(run), *self._broker(), *self._processes(),
                *(line for host in self._world.hosts for line in self._host(host)),
            ]  # fmt: skip
        except (psycopg.Error, redis.exceptions.RedisError, sqlite3.Error, OSError) as error:
            return [f"cannot be looked at: {type(error).__name__}: {error}"]

    def record(self, run: str) -> list[str]:
        """What is wrong in the record of a run that has ended, and will stay so."""
        return [*self._reasons(run), *self._fio_starts(run)]

    def outcomes(self, run: str) -> Counter[str]:
        """How the run's trials ended: state and code -> how many."""
        return Counter(f"{state} {code}".strip() for state, code in self._rows(OUTCOMES, run))

    def attempts(self) -> Counter[str]:
        """How all attempts of the campaign ended: a campaign whose faults do not bite has none but done ones."""
        return Counter(f"{state} {code}".strip() for state, code in self._rows(ATTEMPTS, ""))

    def _rows(self, query: str, run: str) -> list[tuple[object, ...]]:
        with self._world.database() as connection:
            return connection.execute(query, {"run": run}).fetchall()

    def _database(self, run: str) -> Iterator[str]:
        for name, query in RULES.items():
            rows = self._rows(query, run)
            if rows:
                yield f"{name}: {'; '.join(str(tuple(map(str, row))) for row in rows[:4])}"

    def _reasons(self, run: str) -> Iterator[str]:
        for number, code, words in self._rows(FAILED_TRIALS, run):
            if code not in EXPECTED_REASONS:
                yield f"trial {number} failed for a reason that no fault explains: {code}: {words}"
        for state, code, words in self._rows(RUN_END, run):
            if code not in ("", "no_trial_done"):
                yield f"the run is {state}: {code}: {words}"

    def _fio_starts(self, run: str) -> Iterator[str]:
        """Our own fio notes every start: an attempt that is done measured once, and no attempt measured twice."""
        logs = [host.fio_log.read_text().splitlines() for host in self._world.hosts]
        starts = Counter(line.rpartition("/")[2] for lines in logs for line in lines)
        for attempt, state in self._rows(TRIAL_ATTEMPTS, run):
            count = starts[f"{attempt}.0"]
            if count > 1 or (state == "done" and count != 1):
                yield f"attempt {attempt} is {state} and its fio was started {count} times"

    def _broker(self) -> Iterator[str]:
        with broker(self._world) as connection:
            for key in connection.scan_iter("host.*", count=1000):
                name = key.decode()
                if not name.endswith(("unacked", "unacked_index", "unacked_mutex")) and connection.type(key) == b"list":
                    yield f"{connection.llen(key)} orders lie in {name}"

    def _host(self, host: LabHost) -> Iterator[str]:
        now = queue_settings(host.device) if host.device else {}
        for name, before in host.before.items():
            if now.get(name) != before:
                yield f"{host.slug}: {name} of {host.device} was {before} and is {now.get(name)}"
        for what, database, query in (
            ("batches in the spool", "spool.db", "select attempt, seq from batches"),
            (
                "orders under way in the journal",
                "journal.db",
                "select attempt, begun_at from attempts where finished_at is null",
            ),
            ("settings to be put back in the journal", "journal.db", "select name, before, written from baselines"),
        ):
            rows = host.ask(database, query)
            if rows:
                yield f"{host.slug}: {len(rows)} {what}: {rows[:3]}"
        records = list((host.state_folder / "scopes").glob("*.json"))
        if records:
            yield f"{host.slug}: scopes are open: {[path.name for path in records]}"
        yield from _cgroups(host)

    def _processes(self) -> Iterator[str]:
        if not self._world.network.real:
            return  # without a process namespace of our own others' fio would be seen
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _is_fio(entry):
                yield f"fio runs: process {entry.name}"


def _is_fio(process: Path) -> bool:
    try:
        fields = (process / "stat").read_text()
    except OSError:
        return False
    return "(fio)" in fields and fields.rpartition(")")[2].split()[0] not in "ZX"


def _cgroups(host: LabHost) -> Iterator[str]:
    digest = hashlib.sha256(str(host.state_folder.resolve()).encode()).hexdigest()[:12]
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            if name.startswith(f"sweetspot.{digest}."):
                yield f"{host.slug}: cgroup {folder}/{name} is left"
