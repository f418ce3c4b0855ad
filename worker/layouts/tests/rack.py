"""Loop devices that layouts are built on in tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel import usage
from worker.layouts import building, steps, taking_down
from worker.layouts.steps import Built
from worker.link.registration import offered
from worker.policy import Policy
from worker.recipes.layouts.problems import needed
from worker.recipes.layouts.text import parse

DRIVES = 4
DRIVE_BYTES = 400 * rig.MIB  # mkfs.xfs makes nothing smaller than 300 MiB


def need(line: str) -> None:
    """Leave the test out where this host cannot build the line, saying what is missing."""
    if missing := {*needed(parse(line))} - {*offered()}:
        pytest.skip(f"this host has no {', '.join(sorted(missing))}")


class Rack:
    """Loop devices that the policy allows to be destroyed."""

    def __init__(self, folder: Path, files: list[Path], devices: list[str]) -> None:
        self.folder = folder
        self.files = files
        self.devices = devices
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        self.journal = Journal(self.state / "journal.db")
        self.policy = self.allow()
        self.armed = tuple(f"loop:{file}" for file in files)

    def allow(self, *signatures: str) -> Policy:
        """A policy that also names these signatures."""
        more = {"destroy": True, "destroy_signatures": list(signatures)}
        drives = enumerate(zip(self.devices, self.files, strict=True))
        targets = [rig.block(device, file, **more) | {"id": f"d{number}"} for number, (device, file) in drives]
        names = [f"d{number}" for number in range(len(self.devices))]
        self.policy = rig.load(self.folder, *targets, pools={"rack": names, "back": names[2:]})
        return self.policy

    def build(
        self, line: str, *, armed: tuple[str, ...] | None = None, go_on: Callable[[], None] = lambda: None
    ) -> Built:
        layout = parse(line)
        return building.build(
            layout,
            self.policy.targets[: layout.drives],
            self.armed if armed is None else armed,
            allowed=self.policy,
            key="t1",
            run="r1",
            state=self.state,
            journal=self.journal,
            go_on=go_on,
        )

    def take_down(self, built: Built) -> None:
        taking_down.take_down(built.record, state=self.state, journal=self.journal)

    def unmount(self) -> None:
        """What a failed test left mounted would keep the loop devices for all later tests."""
        for _device, mount in usage.read_usage().mounts:
            if mount.point.startswith(str(self.state)):
                rig.unmount(mount.point)

    def assert_blank(self) -> None:
        assert [
            str(steps.read_content(device)) for device in self.devices if not steps.read_content(device).blank
        ] == []
        assert self.journal.layouts() == ()
        assert not any(mount.point.startswith(str(self.state)) for _device, mount in usage.read_usage().mounts)


@contextmanager
def racked(folder: Path) -> Iterator[Rack]:
    files = [rig.sparse(folder / f"drive{n}.img", DRIVE_BYTES) for n in range(DRIVES)]
    with ExitStack() as held:
        devices = [held.enter_context(rig.loop(file, "--partscan")) for file in files]
        rack = Rack(folder, files, devices)
        held.callback(rack.unmount)
        yield rack
