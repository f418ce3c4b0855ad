"""`make presets`: runs every built-in plan at small scale with a private installation, and reports it.

Exit status 1 if a plan has a problem. A plan that needs what this machine does not have is listed as not tried.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

from dev.console import ToolError, columns, run_command, say, step
from dev.demo import start
from dev.presets import drives
from dev.presets.scaling import Scale
from dev.stack.state import State
from dev.stack.temporary import temporary

if TYPE_CHECKING:
    from dev.presets.runs import Report


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make presets", description="Run every built-in plan at small scale.")
    parser.add_argument("plans", nargs="*", metavar="WORD", help="only plans whose name contains a word")
    parser.add_argument("--points", type=int, default=Scale.points, help="of each part (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=Scale.seconds, help="of each trial (default: %(default)s)")
    options = parser.parse_args(arguments)
    if os.getuid() != 0:
        raise ToolError("make presets creates loop devices and mounts, which requires root.")
    signal.signal(signal.SIGTERM, _terminated)
    with temporary("presets", drives.remove) as state:
        return _run(state, options.plans, Scale(points=options.points, seconds=options.seconds, hosts=2))


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    """End as after an error, so that devices and services are removed."""
    sys.exit(128 + signal.SIGTERM)


def _run(state: State, words: Sequence[str], scale: Scale) -> int:
    start.bring_up(state, drives.prepare)
    from dev.presets import second_host  # Django is set up only now
    from dev.presets.runs import builtin_plans, report

    second_host.start(state)
    before = drives.settings(state)
    reports: list[Report] = []
    for plan in builtin_plans(words):
        with step(plan.slug):
            reports.append(report(plan, scale))
        for text in (*reports[-1].problems, *reports[-1].lacking):
            say(f"      {text[:1000]}")
    left = _changed(before, drives.settings(state)) + drives.left_over(state)
    rows = [
        (one.plan, one.verdict, f"{one.done} of {one.trials}", f"{one.seconds:.0f}", ", ".join(one.targets))
        for one in reports
    ]
    say("\n".join(["", *columns([("plan", "", "trials", "seconds", "targets"), *rows]), ""]))
    for text in left:
        say(f"  ✗ left over: {text}")
    say(_summary(reports))
    return 1 if left or any(one.problems for one in reports) else 0


def _summary(reports: "Sequence[Report]") -> str:
    passed = sum(one.verdict == "✓" for one in reports)
    done, seconds = sum(one.done for one in reports), sum(one.seconds for one in reports)
    return f"{passed} of {len(reports)} plans completely, {done} trials in {seconds / 60:.1f} minutes."


def _changed(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> list[str]:
    return [
        f"{name} of {device} was {value} and is {after[device].get(name)}"
        for device, values in before.items()
        for name, value in values.items()
        if after[device].get(name) != value
    ]


if __name__ == "__main__":
    run_command(main)
