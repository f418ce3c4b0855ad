"""`make truth`: compares measurements and claims of the product with known values.

    drives      60 trials on drives of known speed
    events      steps, ramps and freezes of a drive
    repeats     10 measured runs in which nothing differs
    statistics  simulated pages in which nothing differs

Exit status 1 if a figure is outside its bound; 3 if a part cannot run on this machine and so has not passed.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from dev.bench.figures import show
from dev.console import run_command, say
from dev.truth.drive import Disturbed, NotPossible

PAGES = 40  # simulated pages for each scenario; `make truth-statistics` simulates more
MISSED, IMPOSSIBLE = 1, 3


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make truth", description="Compare measurements and claims with known values."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--smallest", action="store_true", help="run each part in its smallest form: seconds")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, _terminated)
    statuses = [_part(name, options) for name in options.parts or PARTS]
    return MISSED if MISSED in statuses else max(statuses)


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    """End as after an error, so that devices and services are removed."""
    sys.exit(128 + signal.SIGTERM)


def _part(name: str, options: argparse.Namespace) -> int:
    say(f"{name}:")
    try:
        return PARTS[name](options)
    except NotPossible as reason:
        say(f"  ✗ This part cannot run on this machine, so it has not passed: {reason}.")
        return IMPOSSIBLE
    except Disturbed as disturbed:
        status = show(disturbed.figures, as_json=options.json)
        for trial in disturbed.trials:
            say(f"  ✗ Disturbed at each try by other load on this machine: {trial}")
        return status or IMPOSSIBLE


def _drives(options: argparse.Namespace) -> int:
    from dev.truth import speeds

    return show(speeds.figures(speeds.smallest() if options.smallest else speeds.cases()), as_json=options.json)


def _events(options: argparse.Namespace) -> int:
    from dev.truth import events

    return show(events.figures(events.smallest() if options.smallest else events.cases()), as_json=options.json)


def _repeats(options: argparse.Namespace) -> int:
    from dev.truth import repeats

    counts = (repeats.RUNS, repeats.REPEATS)
    if options.smallest:
        counts = (repeats.SMALLEST_RUNS, repeats.SMALLEST_REPEATS)
    return show(repeats.figures(*counts), as_json=options.json)


def _statistics(options: argparse.Namespace) -> int:
    from dev.truth import statistics

    return statistics.main(["--pages", "1", "--scenarios", "4"] if options.smallest else ["--pages", str(PAGES)])


PARTS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "drives": _drives, "events": _events, "repeats": _repeats, "statistics": _statistics,
}  # fmt: skip

if __name__ == "__main__":
    run_command(main)
