"""`make torture`, or python -m dev.faults --faults 200 --seed 7.

The process outside makes the namespaces and cleans up; the one inside plays the campaign.
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
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from dev.console import ToolError, print_error, run_command, say, step
from dev.faults import campaign, disks
from dev.faults.fault_schedule import LONGEST_S, deal
from dev.faults.faults import KINDS, NEED_COMPILER, NEED_ROOT
from dev.faults.installation import World
from dev.faults.supervisor import tree
from dev.stack import lifecycle, processes
from dev.stack.processes import Record
from dev.stack.state import REPOSITORY, State, default_state

# Set by the process outside for the one inside.
INSIDE, SEEDS = "SWEETSPOT_TORTURE_STATE", "SWEETSPOT_TORTURE_SEEDS"
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """0 if every fault was survived, 1 if not, 130 if interrupted."""
    options = _options(arguments)
    inside = os.environ.get(INSIDE)
    return _inside(options, State(Path(inside))) if inside else _outside(options)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make torture", description="Faults over a whole private Sweetspot.")
    parser.add_argument("--faults", type=int, default=200, help="how many, for each seed (default: %(default)s)")
    parser.add_argument("--seed", action="append", default=None, help="a number or “fresh”; may be given several times")
    parser.add_argument("--round", type=int, default=0, help="play only this round of the seed again")
    parser.add_argument("--kinds", default="", help="parts of names, with commas: only kinds that contain one")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--longest", type=float, default=LONGEST_S, help="no fault is held for longer, in s")
    parser.add_argument("--no-calm", action="store_true", help="leave out the run without faults at the end")
    parser.add_argument("--list", action="store_true", help="name the kinds and end")
    options = parser.parse_args(arguments)
    words = [word.strip().lower() for word in options.kinds.split(",") if word.strip()]
    options.kinds = [kind for kind in KINDS if not words or any(word in kind.lower() for word in words)]
    if not options.kinds:
        parser.error(f"no kind is meant by {words}; --list names them")
    given = os.environ.get(SEEDS, "").split() or options.seed or ["fresh"]
    options.seeds = [secrets.randbelow(10**6) if seed == "fresh" else int(seed) for seed in given]
    return options


# ---- outside: namespaces, and what outlives them


def _outside(options: argparse.Namespace) -> int:
    if options.list:
        say("\n".join(options.kinds))
        return 0
    _sweep()
    state = default_state(f"torture-{os.getpid()}")
    state.prepare()
    state.write_facts("owner.json", asdict(_myself()))
    environment = {**os.environ, INSIDE: str(state.root), SEEDS: " ".join(map(str, options.seeds))}
    command = [sys.executable, "-m", "dev.faults", *sys.argv[1:]]
    if os.getuid() == 0:
        command = [*NAMESPACES, *command]
    try:
        return _attend(subprocess.Popen(command, cwd=REPOSITORY, env=environment))
    finally:
        _remove(state)


def _attend(child: "subprocess.Popen[bytes]") -> int:
    """Wait for the campaign; Ctrl-C is for it, and it is given time to say how far it came."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return child.wait()
    except KeyboardInterrupt:
        print_error("Interrupted: ending what was started.")
        _pass_on(child.pid)
        try:
            return child.wait(60)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.kill()
            child.wait(10)
        return INTERRUPTED


def _pass_on(child: int) -> None:
    """Tell the campaign itself, which is below the one that made the namespaces, and the namespace's first process."""
    for pid in tree(child):
        with contextlib.suppress(OSError):
            if b"dev.faults" in Path(f"/proc/{pid}/cmdline").read_bytes() and (pid != child or os.getuid()):
                os.kill(pid, signal.SIGTERM)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _myself() -> Record:
    pid = os.getpid()
    return Record("torture", pid, processes.started_ticks(pid) or 0, processes.boot_id())


def _remove(state: State) -> None:
    """Loop devices outlive namespaces; everything else of the campaign is gone by now."""
    if os.getuid() == 0:
        disks.detach_all(state.root)
    lifecycle.remove(state)


def _sweep() -> None:
    """Remove what earlier campaigns left behind that were killed."""
    pattern = default_state("torture-").root
    for root in pattern.parent.glob(f"{pattern.name}*"):
        state = State(root)
        owner = state.read_facts("owner.json")
        if root.stat().st_uid == os.getuid() and not (owner and processes.alive(Record(**owner))):
            _remove(state)


# ---- inside


def _inside(options: argparse.Namespace, state: State) -> int:
    if os.getpid() == 1:
        child = os.fork()
        if child:
            return _reap_until(child)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    tally, keep = campaign.Tally(), REPOSITORY / ".build" / "torture"
    shutil.rmtree(keep, ignore_errors=True)
    world = World(state, options.hosts)
    try:
        _play(world, options, tally, keep)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        campaign.report(tally)
        say("Started again: " + campaign.counts(world.watchman.restarts))
        with step("ending all processes"):
            world.close()
    if tally.failures:
        say(f"Not survived: {', '.join(tally.failures)}. Logs: {keep}")
        say("Play one again: make torture ARGS='--seed S --round R'")
    return 1 if tally.failures else 0


def _reap_until(child: int) -> int:
    """As the first process of the namespace: take in everything that ends, until the campaign does."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) & 0xFF


def _play(world: World, options: argparse.Namespace, tally: campaign.Tally, keep: Path) -> None:
    kinds = _possible(world, options.kinds)
    world.bring_up()
    for seed in options.seeds:
        rounds = deal(seed, faults=options.faults, kinds=kinds, hosts=options.hosts, longest_s=options.longest)
        chosen = [each for each in rounds if options.round in (0, each.number)]
        say(f"Seed {seed}: {sum(len(r.faults) for r in chosen)} faults of {len(kinds)} kinds in {len(chosen)} rounds")
        played = campaign.Campaign(world, seed, chosen, tally, keep)
        played.run()
    if not options.no_calm:
        _calm(played, tally)


def _calm(played: campaign.Campaign, tally: campaign.Tally) -> None:
    with step("a run without faults"):
        troubles = played.play_without_faults()
    for line in troubles:
        print_error(f"  ✗ {line}")
    if troubles:
        tally.failures.append("the run without faults")


def _possible(world: World, kinds: Sequence[str]) -> list[str]:
    left_out = {
        **(dict.fromkeys(NEED_ROOT, "root") if not world.root else {}),
        **(dict.fromkeys(NEED_COMPILER, "a C compiler") if not world.clocks_jump else {}),
    }
    for kind in kinds:
        if kind in left_out:
            say(f"  – left out, because it takes {left_out[kind]}: {kind}")
    possible = [kind for kind in kinds if kind not in left_out]
    if not possible:
        raise ToolError("Nothing is left to be done.")
    return possible


if __name__ == "__main__":
    try:
        run_command(main)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
