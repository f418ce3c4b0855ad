"""`make lab`: build and boot the guest, run the storage suite in it, end it. 1 if anything was not as it should be."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from dev.console import print_error, run_command, say
from dev.lab.machine import Machine
from dev.lab.server import DOORS, Server
from dev.lab.storage_host import StorageHost
from dev.lab.suite import Suite, differences
from dev.lab.tables import written
from dev.stack.state import REPOSITORY, default_state

INSIDE = ("tests", "pull")  # in the guest alone
WHOLE = ("settings", "sweep", "layouts", "purge", "install")  # through the whole system
PARTS = (*INSIDE, *WHOLE)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make lab", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these of {', '.join(PARTS)}; all by default")
    parser.add_argument("--directory", type=Path, default=REPOSITORY / ".build/lab", help="where the guest is kept")
    parser.add_argument("--keep", action="store_true", help="leave the guest running, and say how to reach it")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    signal.signal(signal.SIGTERM, _interrupted)
    return _run(options.directory.absolute(), options.parts or PARTS, keep=options.keep)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class Lab:
    """The guest, what is done in it, and how each part ended."""

    def __init__(self, directory: Path) -> None:
        state = default_state("lab")
        self.server = Server(state)
        self.machine = Machine(directory, ports_file=state.root / "ports.json", doors=DOORS)
        self.suite = Suite(self.machine, REPOSITORY)
        self.problems: list[str] = []
        self.told: list[Sequence[str]] = []

    def play(self, parts: Sequence[str]) -> None:
        self.machine.up()
        self.suite.send()
        before = self.suite.snapshot()
        for name in INSIDE:
            if name in parts:
                self._timed(name, {"tests": self.suite.tests, "pull": self.suite.pull_a_drive}[name])
        if wanted := [name for name in WHOLE if name in parts]:
            self._through_the_system(wanted)
        self._timed("as it was", lambda: differences(before, self.suite.snapshot()))

    def _through_the_system(self, wanted: Sequence[str]) -> None:
        self.server.start()
        from dev.lab.layouts import layouts  # Django's models can be used only now
        from dev.lab.purge import purges
        from dev.lab.restarts import restarts
        from dev.lab.settings import settings
        from dev.lab.sweep import sweep
        from dev.lab.system import System

        storage = StorageHost(self.machine, REPOSITORY)
        system = System(self.machine, self.server, storage)
        system.install()
        deeds: Mapping[str, Callable[[System], list[str]]] = {
            "settings": settings, "sweep": sweep, "layouts": layouts, "purge": purges, "install": restarts,
        }  # fmt: skip
        for name in wanted:
            self._timed(name, lambda name=name: deeds[name](system))  # type: ignore[misc]
        storage.stop_service()

    def _timed(self, name: str, deed: Callable[[], list[str] | None]) -> None:
        say(f"{name}:")
        begun = time.monotonic()
        try:
            found = deed() or []
        except Exception as error:  # noqa: BLE001 - told, and the other parts go on
            found = [f"{type(error).__name__}: {error}"]
        for words in found:
            print_error(f"    ✗ {words}")
        self.problems += [f"{name}: {words}" for words in found]
        minutes = f"{(time.monotonic() - begun) / 60:.1f}"
        self.told.append((name, minutes, f"{len(found)} problems" if found else "✓"))

    def end(self, *, keep: bool) -> None:
        self.server.end()
        if keep:
            say(f"The guest goes on as process {self.machine.pid}; reach it by: {self.machine.ssh_line}")
        else:
            self.machine.end()


def _run(directory: Path, parts: Sequence[str], *, keep: bool) -> int:
    begun = time.monotonic()
    lab = Lab(directory)
    try:
        lab.play(parts)
    finally:
        lab.end(keep=keep)
    say("\n".join(["", *written([("part", "minutes", ""), *lab.told]), ""]))
    say(f"Took {(time.monotonic() - begun) / 60:.1f} minutes. Everything was ended and removed.")
    for problem in lab.problems:
        print_error(problem)
    return 1 if lab.problems else 0


if __name__ == "__main__":
    try:
        run_command(main)
    except KeyboardInterrupt:
        print_error("Interrupted: everything was ended and removed.")
        sys.exit(130)
