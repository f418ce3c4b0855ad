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

from dev.bench.figures import Figure, show
from dev.console import run_command, say
from dev.truth.drive import NotPossible

PAGES = 40  # simulated pages for each scenario; `make truth-statistics` simulates more
MISSED, IMPOSSIBLE = 1, 3


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make truth", description="Compare measurements and claims with known values."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, _terminated)
    statuses = [_part(name) for name in options.parts or PARTS]
    return MISSED if MISSED in statuses else max(statuses)


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    """End as after an error, so that devices and services are removed."""
    sys.exit(128 + signal.SIGTERM)


def _part(name: str) -> int:
    say(f"{name}:")
    try:
        return PARTS[name]()
    except NotPossible as reason:
        say(f"  ✗ This part cannot run on this machine, so it has not passed: {reason}.")
        return IMPOSSIBLE


def _drives() -> int:
    from dev.truth import speeds

    return _shown(speeds.figures)


def _events() -> int:
    from dev.truth import events

    return _shown(events.figures)


def _repeats() -> int:
    from dev.truth import repeats

    return _shown(repeats.figures)


def _statistics() -> int:
    from dev.truth import statistics

    return statistics.main(["--pages", str(PAGES)])


def _shown(figures: Callable[[], Sequence[Figure]]) -> int:
    return show(figures(), as_json=False)


PARTS: Mapping[str, Callable[[], int]] = {
    "drives": _drives, "events": _events, "repeats": _repeats, "statistics": _statistics,
}  # fmt: skip

if __name__ == "__main__":
    run_command(main)
