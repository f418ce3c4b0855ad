"""`python -m dev COMMAND`: the commands of the Makefile that need no options."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from dev.console import ToolError, print_error, say
from dev.stack import lifecycle, services
from dev.stack.state import State, default_state
from dev.stack.temporary import SHARED_VARIABLE

INTERRUPTED = 130
NOT_RUNNING = "The demo is not running."
DEMO = State(Path(os.environ[SHARED_VARIABLE])) if SHARED_VARIABLE in os.environ else default_state("demo")


def demo(size: str = "") -> int:
    """With the size `smallest`, run only a few trials of a second."""
    from dev.demo import start

    return start.main(DEMO, smallest=size == "smallest")


def stop() -> int:
    say("Stopped; the data are kept. `make demo` starts it again." if lifecycle.stop(DEMO) else NOT_RUNNING)
    return 0


def clean() -> int:
    if not DEMO.exists:
        say("Nothing to remove.")
        return 0
    lifecycle.stop(DEMO)
    lifecycle.remove(DEMO)
    say(f"Removed {DEMO.root}: database, results, log-in, worker's state, scratch files, logs.")
    say("Kept: .venv and .build in this repository, and the packages that set-up installed.")
    return 0


def status() -> int:
    if not (names := lifecycle.running(DEMO)):
        say(NOT_RUNNING)
        return 0
    say("Running: " + ", ".join(lifecycle.LABELS[name] for name in names))
    say(f"Address: {services.public_url(DEMO)}")
    say(f"Logs:    {DEMO.logs}")
    return 0


def run_tests(arguments: str) -> int:
    """With pytest's arguments, or all tests if there are none."""
    from dev.testing import runner

    return runner.main(arguments)


def run_quick_tests() -> int:
    from dev.testing import runner

    return runner.main(quick=True)


def screens(*arguments: str) -> int:
    from dev.screens import capture

    return capture.main(DEMO, arguments)


COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo, "stop": stop, "clean": clean, "status": status, "test": run_tests,
    "test-quick": run_quick_tests, "screens": screens,
}  # fmt: skip


def _on_term(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(command: str, *arguments: str) -> int:
    """Run one command. The exit status: 0 done, 1 failed, 130 interrupted."""
    signal.signal(signal.SIGTERM, _on_term)
    try:
        return COMMANDS[command](*arguments)
    except ToolError as error:
        print_error(f"sweetspot: {error}")
        return 1
    except KeyboardInterrupt:
        print_error("Interrupted. Services that were started keep running; `make stop` stops them.")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
