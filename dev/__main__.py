"""`python -m dev COMMAND`: the commands of the Makefile that need no options."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from dev.console import ToolError, print_error, say
from dev.stack import lifecycle, services
from dev.stack.state import State, default_state

INTERRUPTED = 130
NOT_RUNNING = "The demo is not running."


def main(argv: Sequence[str]) -> int:
    """Run one command. The exit status: 0 done, 1 failed, 130 interrupted."""
    options = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _on_term)
    try:
        return COMMANDS[options.command](options)
    except ToolError as error:
        print_error(f"sweetspot: {error}")
        return 1
    except KeyboardInterrupt:
        print_error("Interrupted. Services that were started keep running; `make stop` stops them.")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev", description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("arguments", nargs="?", default="", help="pytest's arguments, for `test`")
    return parser


def _on_term(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def demo_state() -> State:
    return default_state("demo")


def run_demo(_options: argparse.Namespace) -> int:
    from dev.demo import start

    return start.main(demo_state())


def run_stop(_options: argparse.Namespace) -> int:
    say("Stopped; the data are kept. `make demo` starts it again." if lifecycle.stop(demo_state()) else NOT_RUNNING)
    return 0


def run_clean(_options: argparse.Namespace) -> int:
    state = demo_state()
    if not state.exists:
        say("Nothing to remove.")
        return 0
    lifecycle.stop(state)
    lifecycle.remove(state)
    say(f"Removed {state.root}: database, results, log-in, worker's state, scratch files, logs.")
    say("Kept: .venv and .build in this repository, and the packages that set-up installed.")
    return 0


def run_status(_options: argparse.Namespace) -> int:
    state = demo_state()
    names = lifecycle.running(state) if state.exists else []
    if not names:
        say(NOT_RUNNING)
        return 0
    say("Running: " + ", ".join(lifecycle.LABELS[name] for name in names))
    say(f"Address: {services.public_url(state)}")
    say(f"Logs:    {state.logs}")
    return 0


def run_test(options: argparse.Namespace) -> int:
    from dev.testing import runner

    return runner.main(options.arguments)


def run_screens(_options: argparse.Namespace) -> int:
    from dev.screens import capture

    return capture.main(demo_state())


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "demo": run_demo,
    "stop": run_stop,
    "clean": run_clean,
    "status": run_status,
    "test": run_test,
    "screens": run_screens,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
