"""Rounds of the campaign: start a run on all hosts, inject faults, wait for its end, check the invariants."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from dev.console import ToolError, print_error, say
from dev.faults import databases
from dev.faults.fault_schedule import Round, ScheduledFault
from dev.faults.faults import FAULTS
from dev.faults.installation import Installation
from dev.faults.invariants import InvariantChecker
from dev.stack.network import await_condition

START_LIMIT_S = 90.0
RUN_LIMIT_S = 240.0  # from the end of the round's last fault
REPAIR_LIMIT_S = 90.0  # from the run's end until no violation is left
MAX_FAILED_ROUNDS = 3  # in a row


@dataclass
class Tally:
    """Counts by name of fault, counts of outcomes, and the failed rounds."""

    injected: Counter[str] = field(default_factory=Counter)
    survived: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Campaign:
    def __init__(
        self,
        installation: Installation,
        checker: InvariantChecker,
        seed: int,
        rounds: Sequence[Round],
        tally: Tally,
        logs: Path,
    ) -> None:
        self._installation = installation
        self._checker = checker
        self._seed = seed
        self._rounds = rounds
        self._tally = tally
        self._logs = logs

    def run(self) -> None:
        """Run all rounds. Raises ToolError if MAX_FAILED_ROUNDS rounds in a row violate invariants."""
        started_at, total, done, in_a_row = time.monotonic(), sum(len(r.faults) for r in self._rounds), 0, 0
        for each in self._rounds:
            violations = self._run_round(each)
            done += len(each.faults)
            in_a_row = in_a_row + 1 if violations else 0
            spent_s = time.monotonic() - started_at
            left = "" if done == total else f", about {spent_s / done * (total - done) / 60:.0f} min left"
            verdict = f"✗ {len(violations)} violations" if violations else "✓"
            say(f"  {done:>3} of {total} faults, {spent_s / 60:.1f} min{left}: round {each.number} {verdict}")
            if in_a_row == MAX_FAILED_ROUNDS:
                raise ToolError(f"{MAX_FAILED_ROUNDS} rounds in a row violated invariants; see {self._logs}.")

    def _run_round(self, each: Round) -> list[str]:
        """The violations of invariants."""
        log_sizes = {path: path.stat().st_size for path in self._installation.state.logs.glob("*.log")}
        run = self._start_run(each.number)
        started_at = time.monotonic()
        threads = [
            threading.Thread(target=self._inject, args=(fault, started_at), daemon=True) for fault in each.faults
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        violations = self._await_end(run, [fault.name for fault in each.faults])
        self._count(each, run, violations)
        if violations:
            self._report(each, run, violations, log_sizes)
        return violations

    def _inject(self, fault: ScheduledFault, started_at: float) -> None:
        self._installation.pause(max(0.0, started_at + fault.at_s - time.monotonic()))
        try:
            FAULTS[fault.name](self._installation, fault)
        except Exception as error:  # noqa: BLE001 - printed; the other faults continue
            print_error(f"    {fault.name} could not be injected: {type(error).__name__}: {error}")

    # ---- the run

    def _start_run(self, number: int) -> str:
        """The id of a new run on every target, with the plan of round `number`.

        Raises ToolError if the installation does not recover.
        """
        run, problem = "", ""

        def started() -> bool:
            nonlocal run, problem
            try:
                run = self._try_to_start(number)
            except Exception as error:  # noqa: BLE001 - a service may not be up yet
                problem = f"{type(error).__name__}: {error}"
            return bool(run)

        if not await_condition(started, limit_s=START_LIMIT_S):
            raise ToolError(f"No run could be started within {START_LIMIT_S:.0f} s: {problem}")
        return run

    def _try_to_start(self, number: int) -> str:
        """ "" while a service is down."""
        from django.db import connections

        from dev.faults import plan

        try:
            if not self._installation.supervisor.all_running():
                return ""
            return str(plan.start(number, self._seed).pk)
        finally:
            connections.close_all()

    def _await_end(self, run: str, faults: Sequence[str] = ()) -> list[str]:
        """Wait for the end of the run and for repairs after it; the violations that are left."""
        await_condition(lambda: self._has_ended(run), limit_s=RUN_LIMIT_S)
        violations: list[str] = []

        def repaired() -> bool:
            violations[:] = self._checker.repairable(run)
            self._installation.pause(0.3)
            return not violations

        await_condition(repaired, limit_s=REPAIR_LIMIT_S)
        return violations + self._checker.permanent(run, faults)

    def _has_ended(self, run: str) -> bool:
        self._installation.pause(0.2)
        with contextlib.suppress(psycopg.Error), self._installation.database() as connection:
            row = connection.execute("select ended_at from runs_run where id = %s", [run]).fetchone()
            return bool(row and row[0])
        return False

    # ---- report

    def _count(self, each: Round, run: str, violations: Sequence[str]) -> None:
        names = Counter(fault.name for fault in each.faults)
        self._tally.injected += names
        if not violations:
            self._tally.survived += names
        with contextlib.suppress(psycopg.Error):
            self._tally.outcomes += self._checker.outcomes(run)
            self._tally.attempts = self._checker.attempts()

    def _report(self, each: Round, run: str, violations: Sequence[str], log_sizes: dict[Path, int]) -> None:
        """Print the violations, and keep them with the round's part of all logs and the hosts' databases."""
        name = f"seed {self._seed} round {each.number}"
        lines = [
            f"{name}, run {run}:",
            *(f"    {fault}" for fault in each.faults),
            *(f"  ✗ {line}" for line in violations),
        ]
        print_error("\n".join(lines))
        self._tally.failures.append(name)
        folder = self._logs / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "violations.txt").write_text("\n".join(lines) + "\n")
        for path in self._installation.state.logs.glob("*.log"):
            with path.open("rb") as log:
                log.seek(log_sizes.get(path, 0))
                (folder / path.name).write_bytes(log.read())
        for host in self._installation.hosts:
            for database in ("spool.db", "journal.db"):
                with contextlib.suppress(OSError):
                    databases.keep(host.state_folder / database, folder / f"{host.slug}.{database}")

    def run_without_faults(self) -> list[str]:
        """Violations of a final run of each plan. All of its trials must be done."""
        violations: list[str] = []
        for number in (1, 3):
            run = self._start_run(number)
            violations += self._await_end(run)
            outcomes = self._checker.outcomes(run)
            violations += [] if set(outcomes) == {"done"} else [f"its trials: {dict(outcomes)}"]
        return violations


def report(tally: Tally) -> None:
    """Print the table by name of fault."""
    say(f"\n{'fault':<24} {'injected':>8} {'survived':>9}")
    for name in sorted(tally.injected):
        missed = "" if tally.injected[name] == tally.survived[name] else "   ✗"
        say(f"{name:<24} {tally.injected[name]:>8} {tally.survived[name]:>9}{missed}")
    say(f"{'all':<24} {tally.injected.total():>8} {tally.survived.total():>9}")
    say("Trials: " + counts(tally.outcomes))
    say("Attempts: " + counts(tally.attempts))


def counts(of: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in of.most_common())
