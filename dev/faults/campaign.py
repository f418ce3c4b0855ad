"""Rounds: a run over all hosts, faults in the middle of it, its end, and a look at what is left."""

import contextlib
import shutil
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from dev.console import ToolError, print_error, say
from dev.faults.fault_schedule import Fault, Round
from dev.faults.faults import KINDS
from dev.faults.installation import World
from dev.faults.invariants import Witness
from dev.stack.network import await_condition

START_LIMIT_S = 90.0
RUN_LIMIT_S = 240.0  # from the end of a round's last fault
QUIET_LIMIT_S = 90.0  # from the run's end until nothing of it is left anywhere
GIVE_UP_AFTER = 3  # rounds in a row


@dataclass
class Tally:
    """What happened, by kind of fault."""

    dealt: Counter[str] = field(default_factory=Counter)
    survived: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Campaign:
    def __init__(self, world: World, seed: int, rounds: Sequence[Round], tally: Tally, keep: Path) -> None:
        self._world = world
        self._witness = Witness(world)
        self._seed = seed
        self._rounds = rounds
        self._tally = tally
        self._keep = keep
        self._version = ""

    def run(self) -> None:
        """Play all rounds; the tally says how they went."""
        begun, total, done, in_a_row = time.monotonic(), sum(len(r.faults) for r in self._rounds), 0, 0
        for each in self._rounds:
            troubles = self._play(each)
            done += len(each.faults)
            in_a_row = in_a_row + 1 if troubles else 0
            spent_s = time.monotonic() - begun
            left = "" if done == total else f", about {spent_s / done * (total - done) / 60:.0f} min left"
            verdict = f"✗ {len(troubles)} troubles" if troubles else "✓"
            say(f"  {done:>3} of {total} faults, {spent_s / 60:.1f} min{left}: round {each.number} {verdict}")
            if in_a_row == GIVE_UP_AFTER:
                raise ToolError(f"{GIVE_UP_AFTER} rounds in a row left something behind; see {self._keep}.")

    def _play(self, each: Round) -> list[str]:
        marks = {path: path.stat().st_size for path in self._world.state.logs.glob("*.log")}
        run = self._start_run()
        begun = time.monotonic()
        threads = [threading.Thread(target=self._act, args=(fault, begun), daemon=True) for fault in each.faults]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        troubles = self._await_quiet(run)
        self._count(each, run, troubles)
        if troubles:
            self._tell(each, run, troubles, marks)
        return troubles

    def _act(self, fault: Fault, begun: float) -> None:
        self._world.pause(max(0.0, begun + fault.at_s - time.monotonic()))
        try:
            KINDS[fault.kind](self._world, fault)
        except Exception as error:  # noqa: BLE001 - told, and the other faults go on
            print_error(f"    {fault.kind} could not be done: {type(error).__name__}: {error}")

    # ---- the run

    def _start_run(self) -> str:
        """The id of a new run over every target. Raises ToolError where the lab does not come back to its feet."""
        told: list[str] = []

        def started() -> bool:
            try:
                told[:] = [self._try_to_start()]
            except Exception as error:  # noqa: BLE001 - whatever is not up yet
                told[:] = ["", f"{type(error).__name__}: {error}"]
            return bool(told[0])

        if not await_condition(started, limit_s=START_LIMIT_S):
            raise ToolError(f"No run can be started any more: {told[-1]}")
        return told[0]

    def _try_to_start(self) -> str:
        from django.db import connections

        from dev.faults.plan import version
        from webapp.hosts.models import Target
        from webapp.runs.services import start_run

        try:
            if not self._world.watchman.all_up():
                return ""
            targets = list(Target.objects.filter(in_policy=True, present=True))
            return str(start_run(version=version(), targets=targets, by=None, seed=self._seed).pk)
        finally:
            connections.close_all()

    def _await_quiet(self, run: str) -> list[str]:
        """What is left when the run has ended and some time has passed; empty as soon as nothing is."""
        await_condition(lambda: self._ended(run), limit_s=RUN_LIMIT_S)
        troubles: list[str] = []

        def quiet() -> bool:
            troubles[:] = self._witness.leftovers(run)
            self._world.pause(0.3)
            return not troubles

        await_condition(quiet, limit_s=QUIET_LIMIT_S)
        return troubles + self._witness.record(run)

    def _ended(self, run: str) -> bool:
        self._world.pause(0.2)
        with contextlib.suppress(psycopg.Error), self._world.database() as connection:
            row = connection.execute("select ended_at from runs_run where id = %s", [run]).fetchone()
            return bool(row and row[0])
        return False

    # ---- what is told

    def _count(self, each: Round, run: str, troubles: Sequence[str]) -> None:
        kinds = Counter(fault.kind for fault in each.faults)
        self._tally.dealt += kinds
        if not troubles:
            self._tally.survived += kinds
        with contextlib.suppress(psycopg.Error):
            self._tally.outcomes += self._witness.outcomes(run)
            self._tally.attempts = self._witness.attempts()

    def _tell(self, each: Round, run: str, troubles: Sequence[str], marks: dict[Path, int]) -> None:
        name = f"seed {self._seed} round {each.number}"
        lines = [
            f"{name}, run {run}:",
            *(f"    {fault}" for fault in each.faults),
            *(f"  ✗ {line}" for line in troubles),
        ]
        print_error("\n".join(lines))
        self._tally.failures.append(name)
        folder = self._keep / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "troubles.txt").write_text("\n".join(lines) + "\n")
        for path in self._world.state.logs.glob("*.log"):
            with path.open("rb") as log:
                log.seek(marks.get(path, 0))
                (folder / path.name).write_bytes(log.read())
        for host in self._world.hosts:
            for database in ("spool.db", "journal.db"):
                with contextlib.suppress(OSError):
                    shutil.copy(host.state_folder / database, folder / f"{host.slug}.{database}")

    def play_without_faults(self) -> list[str]:
        """After all of that everything must simply be done; what is not, in words."""
        run = self._start_run()
        troubles = self._await_quiet(run)
        outcomes = self._witness.outcomes(run)
        return troubles + ([] if set(outcomes) == {"done"} else [f"its trials: {dict(outcomes)}"])


def report(tally: Tally) -> None:
    """The table by kind."""
    say(f"\n{'kind of fault':<24} {'dealt':>6} {'survived':>9}")
    for kind in sorted(tally.dealt):
        missed = "" if tally.dealt[kind] == tally.survived[kind] else "   ✗"
        say(f"{kind:<24} {tally.dealt[kind]:>6} {tally.survived[kind]:>9}{missed}")
    say(f"{'all':<24} {tally.dealt.total():>6} {tally.survived.total():>9}")
    say("Trials: " + counts(tally.outcomes))
    say("Attempts: " + counts(tally.attempts))


def counts(of: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in of.most_common())
