"""`python -m dev COMMAND`: what the Makefile calls."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from dev.console import Trouble, complain, say
from dev.stack import lifecycle, services
from dev.stack.state import State, default_state

INTERRUPTED = 130


def main(argv: Sequence[str]) -> int:
    """Run one command; 0 done, 1 something stands in the way, 130 interrupted."""
    options = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _on_term)
    try:
        return COMMANDS[options.command](options)
    except Trouble as error:
        complain(f"sweetspot: {error}")
        return 1
    except KeyboardInterrupt:
        complain("Interrupted. What was started stays up; `make stop` ends it.")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev", description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("arguments", nargs="?", default="", help="pytest's, for `test`")
    return parser


def _on_term(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def demo_state() -> State:
    return default_state("demo")


def run_demo(_options: argparse.Namespace) -> int:
    from dev.demo import start  # knows Django; no other command needs it

    return start.main(demo_state())


def run_stop(_options: argparse.Namespace) -> int:
    say("Stopped; its data stay. `make demo` starts it again." if lifecycle.stop(demo_state()) else "Nothing runs.")
    return 0


def run_clean(_options: argparse.Namespace) -> int:
    state = demo_state()
    if not state.exists:
        say("Nothing to remove.")
        return 0
    lifecycle.stop(state)
    lifecycle.remove(state)
    say(f"Removed {state.root}: database, results, log-in, worker's state, test files, logs.")
    say("Left: .venv and .build in this clone, and the packages that set-up installed.")
    return 0


def run_status(_options: argparse.Namespace) -> int:
    state = demo_state()
    names = lifecycle.running(state) if state.exists else []
    if not names:
        say("Nothing runs.")
        return 0
    say("Running: " + ", ".join(lifecycle.LABELS[name] for name in names))
    say(f"Address: {services.public_url(state)}")
    say(f"Logs:    {state.logs}")
    return 0


def run_test(options: argparse.Namespace) -> int:
    from dev.testing import runner

    return runner.main(options.arguments)


def run_check(_options: argparse.Namespace) -> int:
    from dev import checks

    return checks.main()


def run_screens(_options: argparse.Namespace) -> int:
    from dev.screens import capture  # knows Django

    return capture.main(demo_state())


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "demo": run_demo,
    "stop": run_stop,
    "clean": run_clean,
    "status": run_status,
    "test": run_test,
    "check": run_check,
    "screens": run_screens,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
