"""Command-line tools of RAID controllers. `inventory.controllers` matches their output with the kernel's devices.

Not tested on real hardware: the formats are those in the vendors' documentation.
"""

import time
from collections.abc import Iterable

import msgspec

from worker.contract.inventory import Controller
from worker.controllers.areca import ARECA
from worker.controllers.base import Adapter
from worker.controllers.megacli import MEGACLI
from worker.controllers.ssacli import SSACLI
from worker.controllers.storcli import PERCCLI, STORCLI
from worker.process.run import ToolError

# In the order of calls: if two tools list the same controller, the first one counts.
ADAPTERS: tuple[Adapter, ...] = (STORCLI, PERCCLI, MEGACLI, SSACLI, ARECA)


TOTAL_LIMIT_S = 15.0  # after this time, the remaining tools are skipped


class ToolAnswers(msgspec.Struct, frozen=True):
    """The output of the tools. `problems` are by kernel driver."""

    controllers: tuple[tuple[str, Controller], ...] = ()  # with the name of the adapter
    problems: dict[str, str] = {}


def read_controllers(drivers: Iterable[str]) -> ToolAnswers:
    """Call every tool that may support controllers of these drivers. Takes seconds; never raises."""
    found: list[tuple[str, Controller]] = []
    problems: dict[str, list[str]] = {}
    present, give_up_at = frozenset(drivers), time.monotonic() + TOTAL_LIMIT_S
    for adapter in ADAPTERS:
        its_own = sorted(present & set(adapter.drivers))
        try:
            told = _read(adapter, give_up_at) if its_own else ()
        except ToolError as error:
            for driver in its_own:
                problems.setdefault(driver, []).append(str(error))
        else:
            found += [(adapter.name, each) for each in told if not _known(each, found)]
    return ToolAnswers(tuple(found), {driver: " ".join(said) for driver, said in problems.items()})


def _read(adapter: Adapter, give_up_at: float) -> tuple[Controller, ...]:
    """Skip the remaining tools after a time limit, because several may hang."""
    if time.monotonic() > give_up_at:
        raise ToolError(f"{adapter.name} was not called, because other tools took more than {TOTAL_LIMIT_S:g} s.")
    return adapter.read_controllers()


def _known(controller: Controller, found: Iterable[tuple[str, Controller]]) -> bool:
    return bool(controller.address) and any(each.address == controller.address for _, each in found)


def adapter_named(name: str) -> Adapter:
    return next(adapter for adapter in ADAPTERS if adapter.name == name)
