"""`make lab`: build and boot the guest, run the storage suite in it, end it. 1 if anything was not as it should be."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from webapp.local.console import Trouble, complain, say
from webapp.local.lab.machine import Machine
from webapp.local.lab.suite import Suite, differences, table

REPOSITORY = Path(__file__).parents[3]
PARTS = ("tests", "pull", "sweep")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make lab", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these of {', '.join(PARTS)}; all by default")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / ".build/lab", help="where the guest is kept")
    parser.add_argument("--keep", action="store_true", help="leave the guest running, and say how to reach it")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    begun = time.monotonic()
    problems = _run(Machine(options.directory.absolute()), options.parts or PARTS, keep=options.keep)
    say(f"Took {(time.monotonic() - begun) / 60:.1f} minutes.")
    for problem in problems:
        complain(problem)
    return 1 if problems else 0


def _run(machine: Machine, parts: Sequence[str], *, keep: bool) -> list[str]:
    problems: list[str] = []
    try:
        machine.up()
        suite = Suite(machine, REPOSITORY)
        suite.send()
        before = suite.snapshot()
        if "tests" in parts and not suite.tests():
            problems.append("Tests failed in the guest; their words are above.")
        if "pull" in parts and (words := suite.pull_a_drive()):
            problems.append(f"A drive pulled out in mid-trial: {words}")
        points = suite.sweep() if "sweep" in parts else []
        left = differences(before, suite.snapshot())
    finally:
        if not keep:
            machine.end()
    say("\n".join(["", *table(points), ""]) if points else "")
    say("The guest is as it was: no difference between the snapshots." if not left else "What the guest was left with:")
    say("\n".join(f"  {line}" for line in left))
    if keep:
        say(f"The guest goes on as process {machine.pid}; reach it by: {machine.ssh_line}")
    return problems + [f"{len(left)} things are not as they were."] * bool(left)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Trouble as trouble:
        complain(str(trouble))
        sys.exit(1)
