"""Checks of the invariants after a round, from sysfs, /proc, cgroups, files and SQL, without the product's own code."""

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import psycopg
import redis

from dev.faults import databases
from dev.faults.controller import BEFORE, PROGRAM
from dev.faults.disks import queue_settings
from dev.faults.host import PRECIOUS, StorageHost
from dev.faults.installation import Installation
from dev.faults.process_faults import SECOND_WORKER
from dev.faults.queries import (
    ATTEMPTS,
    FAILED_TRIALS,
    INVARIANTS,
    OUTCOMES,
    REFUSED_WORKERS,
    RUN_END,
    TRIAL_STREAMS,
)

# Reasons that a fault explains. Any other reason is a bug in the product.
EXPECTED_REASONS = frozenset(
    {
        "worker_died", "worker_stopped", "lease_expired", "order_expired", "fio_error", "fio_silent", "spool_full",
        "device_gone", "guard_no_space", "guard_held", "guard_busy", "guard_changed", "guard_mounted",
        "guard_quarantined", "guard_serial_changed", "guard_signature",
        "state_disk_full", "order_unreadable", "order_superseded", "order_too_early", "not_on_host", "pgbench_error",
        "step_failed", "start_timeout", "start_missed", "other_host",
    }
)  # fmt: skip
# A fault explains an attempt or a run that failed with such a message: of a drive that is absent (its loop device has
# no file) or quarantined, or of a tool that hung. Its settings are restored later.
ABSENT = ("has size 0", "is name:loop", "the device is absent")
EXPECTED_MESSAGES = (*ABSENT, "is quarantined", f"{PROGRAM} did not finish")


class InvariantChecker:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._refused_workers = 0  # in all rounds before
        self._had_second = False  # a second worker in the round before; its host may refuse for another 150 s

    def repairable(self, run: str) -> list[str]:
        """Violations that may still be repaired, for example because the worker retries."""
        try:
            return [
                *self._database(run), *self._broker(), *self._processes(),
                *(line for host in self._installation.hosts for line in self._host(host)),
            ]  # fmt: skip
        except (psycopg.Error, redis.exceptions.RedisError, OSError) as error:
            return [f"the check failed: {type(error).__name__}: {error}"]

    def permanent(self, run: str, faults: Collection[str]) -> list[str]:
        """Permanent violations in the record of a run that has ended; `faults`: the names of the round's. Call it once
        for each round."""
        return [
            *self._reasons(run), *self._fio_starts(run), *self._refusals(has_second=SECOND_WORKER in faults),
            *self._problems(),
        ]  # fmt: skip

    def outcomes(self, run: str) -> Counter[str]:
        """Number of the run's trials by state and reason code."""
        return Counter(f"{state} {code}".strip() for state, code in self._rows(OUTCOMES, run))

    def attempts(self) -> Counter[str]:
        """Number of all attempts by state and outcome code. If all are done, the faults had no effect."""
        return Counter(f"{state} {code}".strip() for state, code in self._rows(ATTEMPTS, ""))

    def _rows(self, query: str, run: str) -> list[tuple[object, ...]]:
        with self._installation.database() as connection:
            return connection.execute(query, {"run": run}).fetchall()

    def _database(self, run: str) -> Iterator[str]:
        for name, query in INVARIANTS.items():
            rows = self._rows(query, run)
            if rows:
                yield f"{name}: {'; '.join(str(tuple(map(str, row))) for row in rows[:4])}"

    def _reasons(self, run: str) -> Iterator[str]:
        for number, code, words in self._rows(FAILED_TRIALS, run):
            if code not in EXPECTED_REASONS and not _is_expected(str(words)):
                yield f"trial {number} failed for an unexpected reason: {code}: {words}"
        for state, code, words in self._rows(RUN_END, run):
            if code not in ("", "no_trial_done") and not _is_expected(str(words)):
                yield f"the run is {state}: {code}: {words}"

    def _fio_starts(self, run: str) -> Iterator[str]:
        """Every fio stream of a done attempt started fio once, and none started it twice. The hosts log each start."""
        logs = [host.fio_log.read_text().splitlines() for host in self._installation.hosts]
        starts = Counter(line.rpartition("/")[2] for lines in logs for line in lines)
        for attempt, stream, state, is_fio in self._rows(TRIAL_STREAMS, run):
            count = starts[f"{attempt}.{stream}"]
            if count > 1 or (state == "done" and count != bool(is_fio)):
                yield f"attempt {attempt} is {state} and fio of its stream {stream} was started {count} times"

    def _refusals(self, *, has_second: bool) -> Iterator[str]:
        ((count,),) = self._rows(REFUSED_WORKERS, "")
        if count != self._refused_workers and not (has_second or self._had_second):
            yield "a worker was refused as a second one, and there was no other"
        self._refused_workers, self._had_second = int(str(count)), has_second

    def _problems(self) -> Iterator[str]:
        for host in self._installation.hosts:
            yield from host.partitioned.problems
            host.partitioned.problems.clear()

    def _broker(self) -> Iterator[str]:
        with self._installation.broker() as connection:
            for key in connection.scan_iter("host.*", count=1000):
                name = key.decode()
                if not name.endswith(("unacked", "unacked_index", "unacked_mutex")) and connection.type(key) == b"list":
                    yield f"{connection.llen(key)} orders are left in {name}"

    def _host(self, host: StorageHost) -> Iterator[str]:
        for device, initial_settings in (
            (host.device, host.initial_settings),
            (host.partitioned.device, host.partitioned.initial_settings),
        ):
            now = queue_settings(device)
            for name, before in initial_settings.items():
                if now.get(name) != before:
                    yield f"{host.slug}: {name} of {device} was {before} and is {now.get(name)}"
        for label, database, sql in (
            ("batches in the spool", "spool.db", "select attempt, seq from batches"),
            (
                "orders under way in the journal",
                "journal.db",
                "select attempt, started_at from attempts where finished_at is null",
            ),
            ("settings to restore in the journal", "journal.db", "select name, before, written from baselines"),
            ("passwords in the journal", "journal.db", "select device from passwords"),
            ("temporary folders in the journal", "journal.db", "select path from folders"),
        ):
            try:
                rows = databases.rows(host.state_folder / database, sql)
            except sqlite3.Error as error:
                yield f"{host.slug}: {label}: {type(error).__name__}: {error}"
            else:
                if rows:
                    yield f"{host.slug}: {len(rows)} {label}: {rows[:3]}"
        yield from (f"{host.slug}: {problem}" for problem in host.partitioned.violations())
        data = host.precious / "data"
        if not data.exists() or data.read_bytes() != PRECIOUS:
            yield f"{host.slug}: {data} of somebody else was changed or removed"
        if left := [path.name for path in host.scratch.glob(".sweetspot/temporary.*")]:
            yield f"{host.slug}: the scratch directory contains {', '.join(left)}"
        if host.controller.write_cache != BEFORE:
            yield f"{host.slug}: the controller's write cache was {BEFORE} and is {host.controller.write_cache}"
        if host.drive_password.exists():
            yield f"{host.slug}: the drive has a password"
        if host.trusted_keys() != host.server_keys:
            yield f"{host.slug}: the worker trusts the keys {', '.join(host.trusted_keys())}"
        records = list((host.state_folder / "scopes").glob("*.json"))
        if records:
            yield f"{host.slug}: scopes are open: {[path.name for path in records]}"
        yield from _cgroups(host)

    def _processes(self) -> Iterator[str]:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _runs_program(entry):
                yield f"a program of a worker still runs: process {entry.name}"


def _is_expected(words: str) -> bool:
    return any(said in words for said in EXPECTED_MESSAGES)


def _runs_program(process: Path) -> bool:
    try:
        fields = (process / "stat").read_text()
    except OSError:
        return False
    name = fields.partition("(")[2].rpartition(")")[0]
    return name in ("fio", "pgbench", PROGRAM) and fields.rpartition(")")[2].split()[0] not in "ZX"


def _cgroups(host: StorageHost) -> Iterator[str]:
    digest = hashlib.sha256(str(host.state_folder.resolve()).encode()).hexdigest()[:12]
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            if name.startswith(f"sweetspot.{digest}."):
                yield f"{host.slug}: cgroup {folder}/{name} is left"
