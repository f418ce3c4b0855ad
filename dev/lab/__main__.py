"""`make lab`: build and boot the guest, run the tests in it, stop it. 1 if a test found a problem."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from dev.console import columns, print_error, run_command, say
from dev.lab.machine import Machine
from dev.lab.plan import show_plan
from dev.lab.server import FORWARDED_PORTS, Server
from dev.lab.storage_host import StorageHost
from dev.lab.suite import Suite, differences
from dev.stack.state import REPOSITORY, default_state

INSIDE = ("tests", "pull")  # use the guest alone
WHOLE = ("settings", "sweep", "layouts", "rebuild", "presets", "purge", "install")  # use the whole system
PARTS = (*INSIDE, *WHOLE)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make lab", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these of {', '.join(PARTS)}; all by default")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / ".build/lab", help="folder for the guest")
    parser.add_argument("--keep", action="store_true", help="keep the guest running and print its ssh command")
    parser.add_argument("--plan", action="store_true", help="check what needs no guest, and start nothing")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    if options.plan:
        problems = show_plan(options.parts or PARTS)
        for problem in problems:
            print_error(f"  ✗ {problem}")
        return 1 if problems else 0
    signal.signal(signal.SIGTERM, _interrupted)
    return _run(options.directory.absolute(), options.parts or PARTS, keep=options.keep)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class Lab:
    """The guest, its server, and the results of the parts."""

    def __init__(self, directory: Path) -> None:
        state = default_state("lab")
        self.server = Server(state)
        self.machine = Machine(directory, ports_file=state.root / "ports.json", forwarded_ports=FORWARDED_PORTS)
        self.suite = Suite(self.machine, REPOSITORY)
        self.problems: list[str] = []
        self.results: list[Sequence[str]] = []

    def run(self, parts: Sequence[str]) -> None:
        self.machine.up()
        self.suite.send()
        before = self.suite.snapshot()
        for name in INSIDE:
            if name in parts:
                self._timed(name, {"tests": self.suite.tests, "pull": self.suite.remove_a_drive}[name])
        if wanted := [name for name in WHOLE if name in parts]:
            self._through_the_system(wanted)
        self._timed("unchanged", lambda: differences(before, self.suite.snapshot()))

    def _through_the_system(self, wanted: Sequence[str]) -> None:
        self.server.start()
        from dev.lab.layouts import layouts  # Django is set up only now
        from dev.lab.presets import presets
        from dev.lab.purge import purges
        from dev.lab.rebuild import rebuilds
        from dev.lab.restarts import restarts
        from dev.lab.settings import settings
        from dev.lab.sweep import sweep
        from dev.lab.system import System

        storage = StorageHost(self.machine)
        system = System(self.machine, self.server, storage)
        system.install()
        tests: Mapping[str, Callable[[System], list[str]]] = {
            "settings": settings, "sweep": sweep, "layouts": layouts, "rebuild": rebuilds,
            "presets": presets, "purge": purges, "install": restarts,
        }  # fmt: skip
        for name in wanted:
            self._timed(name, lambda name=name: tests[name](system))  # type: ignore[misc]
        storage.stop_service()

    def _timed(self, name: str, test: Callable[[], list[str] | None]) -> None:
        say(f"{name}:")
        started_at = time.monotonic()
        try:
            found = test() or []
        except Exception as error:  # noqa: BLE001 - printed; the other parts continue
            found = [f"{type(error).__name__}: {error}"]
        for problem in found:
            print_error(f"    ✗ {problem}")
        self.problems += [f"{name}: {problem}" for problem in found]
        minutes = f"{(time.monotonic() - started_at) / 60:.1f}"
        self.results.append((name, minutes, f"{len(found)} problems" if found else "✓"))

    def end(self, *, keep: bool) -> None:
        self.server.end()
        if keep:
            say(f"The guest keeps running as process {self.machine.pid}. Log in with: {self.machine.ssh_line}")
        else:
            self.machine.end()
            say("All processes were stopped and all data removed.")


def _run(directory: Path, parts: Sequence[str], *, keep: bool) -> int:
    started_at = time.monotonic()
    lab = Lab(directory)
    try:
        lab.run(parts)
    finally:
        lab.end(keep=keep)
    say("\n".join(["", *columns([("part", "minutes", ""), *lab.results]), ""]))
    say(f"Took {(time.monotonic() - started_at) / 60:.1f} minutes.")
    for problem in lab.problems:
        print_error(problem)
    return 1 if lab.problems else 0


if __name__ == "__main__":
    try:
        run_command(main)
    except KeyboardInterrupt:
        print_error("Interrupted: all processes were stopped and all data removed.")
        sys.exit(130)
