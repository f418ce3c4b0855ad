"""`make bench-ingest ARGS="posts"`, or python -m dev.bench.ingest: benchmarks of the ingest path."""

import argparse
import os
from collections.abc import Callable, Sequence

from django.db import connections

from dev.bench.figures import Figure, show
from dev.bench.ingest import hosts, memory, posts, resend
from dev.console import run_command
from dev.stack import lifecycle
from dev.stack.state import State
from dev.stack.temporary import installation

MEASUREMENTS: dict[str, Callable[[State, argparse.Namespace], list[Figure]]] = {
    "posts": posts.measure,
    "hosts": hosts.measure,
    "overload": hosts.overload,
    "resend": resend.measure,
    "memory": memory.measure,
}


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if a figure misses its limit."""
    options = _options(arguments)
    figures: list[Figure] = []
    with installation(f"ingest-{os.getpid()}") as state:
        for name in options.modes or MEASUREMENTS:
            figures += MEASUREMENTS[name](state, options)
            connections.close_all()
            lifecycle.stop(state, quietly=True)
    return show(figures, as_json=options.json)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-ingest", description="Benchmarks of the ingest path.")
    parser.add_argument("modes", nargs="*", choices=[*MEASUREMENTS, []], help="default: all of them")
    parser.add_argument("--post-seconds", type=float, default=4.0, help="of each measurement of `posts`")
    parser.add_argument("--quiet-seconds", type=int, default=60, help="of `overload`, after the load")
    parser.add_argument("--hosts", type=int, default=500, help="for `overload`, four times as many")
    parser.add_argument("--seconds", type=int, default=300, help="how long the hosts report")
    parser.add_argument("--trials", type=int, default=1000, help="resent after an outage")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of alternating measurements for the ratio")
    parser.add_argument("--minutes", type=float, default=15.0, help="length of the trial for `memory`")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    run_command(main)
