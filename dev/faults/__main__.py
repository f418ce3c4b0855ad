"""`make faults`, or python -m dev.faults --faults 200 --seed 7.

The outer process creates the namespaces and cleans up; the inner process runs the campaign.
"""

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from dev.console import ToolError, print_error, run_command, say, step
from dev.faults import campaign
from dev.faults.fault_schedule import MAX_S, fault_schedule
from dev.faults.faults import FAULTS
from dev.faults.installation import Installation
from dev.faults.invariants import InvariantChecker
from dev.stack import processes
from dev.stack.state import REPOSITORY, State
from dev.stack.temporary import temporary

# Set by the outer process for the inner one.
STATE_VARIABLE, SEEDS_VARIABLE = "SWEETSPOT_FAULTS_STATE", "SWEETSPOT_FAULTS_SEEDS"
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
LOGS = REPOSITORY / ".build" / "faults"
INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: Sequence[str]) -> int:
    """0 if the installation survived every fault, 1 if not, 130 if interrupted."""
    options = _options(arguments)
    if options.list:
        say("\n".join(options.names))
        return 0
    if state := os.environ.get(STATE_VARIABLE):
        return _inner(options, State(Path(state)))
    if os.getuid() != 0:
        raise ToolError("make faults creates namespaces, mounts and loop devices, which requires root.")
    with temporary("faults") as state_:
        return _outer(options, state_)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults", description="Fault injection into a private installation.")
    parser.add_argument("--faults", type=int, default=200, help="number of faults for each seed (default: %(default)s)")
    parser.add_argument("--seed", action="append", default=None, help='a number or "fresh"; can be repeated')
    parser.add_argument("--round", type=int, default=0, help="run only this round of the seed")
    parser.add_argument("--only", default="", help="comma-separated parts of names: inject only matching faults")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--max-seconds", type=float, default=MAX_S, help="longest duration of a fault, in s")
    parser.add_argument("--no-final-run", action="store_true", help="omit the run without faults at the end")
    parser.add_argument("--list", action="store_true", help="list the names of all faults")
    options = parser.parse_args(arguments)
    words = [word.strip().lower() for word in options.only.split(",") if word.strip()]
    options.names = [name for name in FAULTS if not words or any(word in name.lower() for word in words)]
    if not options.names:
        parser.error(f"no fault matches {words}; --list shows their names")
    seeds = os.environ.get(SEEDS_VARIABLE, "").split() or options.seed or ["fresh"]
    options.seeds = [secrets.randbelow(10**6) if seed == "fresh" else int(seed) for seed in seeds]
    return options


# ---- outer process


def _outer(options: argparse.Namespace, state: State) -> int:
    environment = {
        **os.environ, STATE_VARIABLE: str(state.root), SEEDS_VARIABLE: " ".join(map(str, options.seeds)),
    }  # fmt: skip
    command = [*NAMESPACES, sys.executable, "-m", "dev.faults", *sys.argv[1:]]
    _handle_signals(_interrupt)
    child = subprocess.Popen(command, cwd=REPOSITORY, env=environment)
    try:
        return child.wait()
    except KeyboardInterrupt:
        print_error("Interrupted: stopping all processes.")
        _stop(child)
        return INTERRUPTED


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """SIGTERM to the inner process, which prints its results; then SIGKILL."""
    for pid in processes.tree(child.pid):
        with contextlib.suppress(OSError):
            if pid != child.pid and b"dev.faults" in Path(f"/proc/{pid}/cmdline").read_bytes():  # not `unshare`
                os.kill(pid, signal.SIGTERM)
    try:
        child.wait(60)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
        child.wait(10)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _handle_signals(handler: "signal._HANDLER") -> None:
    for number in SIGNALS:
        signal.signal(number, handler)


# ---- inner process


def _inner(options: argparse.Namespace, state: State) -> int:
    if os.getpid() == 1 and (child := os.fork()):
        return _reap_until(child)
    _handle_signals(_interrupt)
    shutil.rmtree(LOGS, ignore_errors=True)
    tally, installation = campaign.Tally(), Installation(state, options.hosts)
    try:
        _run(installation, options, tally)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _handle_signals(signal.SIG_IGN)
        campaign.report(tally)
        say("Restarted services: " + campaign.counts(installation.supervisor.restarts))
        with step("stopping all processes"):
            installation.close()
    if tally.failures:
        say(f"Not survived: {', '.join(tally.failures)}. Logs: {LOGS}")
        say("Repeat a round: make faults ARGS='--seed S --round R'")
    return 1 if tally.failures else 0


def _reap_until(child: int) -> int:
    """As the first process of the namespace, reap all processes that end, until the campaign ends."""
    _handle_signals(signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) & 0xFF


def _run(installation: Installation, options: argparse.Namespace, tally: campaign.Tally) -> None:
    names, checker = options.names, InvariantChecker(installation)
    installation.bring_up()
    for seed in options.seeds:
        rounds = fault_schedule(
            seed, faults=options.faults, names=names, hosts=options.hosts, max_s=options.max_seconds
        )
        chosen = [each for each in rounds if options.round in (0, each.number)]
        count = sum(len(each.faults) for each in chosen)
        say(f"Seed {seed}: {count} faults of {len(names)} kinds in {len(chosen)} rounds")
        campaign_ = campaign.Campaign(installation, checker, seed, chosen, tally, LOGS)
        campaign_.run()
    if not options.no_final_run:
        _final_run(campaign_, tally)


def _final_run(campaign_: campaign.Campaign, tally: campaign.Tally) -> None:
    with step("a run without faults"):
        violations = campaign_.run_without_faults()
    for line in violations:
        print_error(f"  ✗ {line}")
    if violations:
        tally.failures.append("the run without faults")


if __name__ == "__main__":
    try:
        run_command(main)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
