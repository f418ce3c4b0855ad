"""The whole system: Sweetspot's server outside, the worker as a service in the guest. Import after the server's start.

Results come from the product itself: runs, setting changes, locks, inventories. The content of the drives comes from
Debian's programs in the guest.
"""

from collections.abc import Callable, Sequence

import msgspec

from dev.console import ToolError, step
from dev.lab.machine import Machine
from dev.lab.server import Server
from dev.lab.storage_host import BAYS, StorageHost, serials
from dev.stack.network import await_condition
from webapp.hosts.installer import install_line
from webapp.hosts.inventory.diff import differences as inventory_differences
from webapp.hosts.keys import signing_key
from webapp.hosts.models import Host, HostInventory, Target
from webapp.hosts.services import issue_enrolment_token
from webapp.plans.document import PlanDocument
from webapp.plans.services import create_plan
from webapp.runs.actions.host_actions import inventory_now, purge_drive
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    OPEN_RUN_STATES,
    Attempt,
    HostAction,
    Run,
    SettingChange,
    TargetLock,
)
from webapp.runs.services import start_run
from worker.contract.inventory import Inventory

SLUG = "lab"
LIMIT_S = 1800.0  # for software emulation on a busy machine
LAYOUT = "layout"
NEW_AFTER_RESTART = ("kernel.boot_id", "name", "path", "major_minor", "devices", "interrupts", "controllers")


class System:
    def __init__(self, machine: Machine, server: Server, storage: StorageHost) -> None:
        self.machine = machine
        self.storage = storage
        self._server = server

    # ---- installation

    def install(self) -> None:
        """Install the worker with the command that the page “Add host” shows. Raises ToolError."""
        with step("preparing the guest: server name, authority; building the wheelhouse"):
            self.storage.prepare(self._server.authority)
        with step("running the command of “Add host” in a root shell of the guest"):
            key, _ = signing_key()
            self.storage.run_in_shell(
                install_line(token=issue_enrolment_token(by=None, slug=SLUG), key=key, again=False)
            )
            self.storage.write_policy()
        with step("waiting for the worker and its drives"):
            self.wait_until(lambda: self._present_drives() == len(BAYS), "the drives of its policy are present")

    def _present_drives(self) -> int:
        return Target.objects.filter(host__slug=SLUG, slug__in=BAYS, in_policy=True, present=True).count()

    @property
    def host(self) -> Host:
        return Host.objects.get(slug=SLUG)

    def target(self, slug: str) -> Target:
        return Target.objects.select_related("host").get(host__slug=SLUG, slug=slug, in_policy=True)

    def wait_until(self, condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
        if not await_condition(condition, limit_s=limit_s):
            raise ToolError(f"{what}: not within {limit_s:.0f} s. The end of the worker's log:\n{self.storage.log()}")

    # ---- runs

    def start(self, document: PlanDocument, *slugs: str, armed: Sequence[str] = BAYS) -> Run:
        """Start a run with these drives armed."""
        version = create_plan(document=document, by=None).versions.get()
        targets = [self.target(slug) for slug in slugs]
        return start_run(version=version, targets=targets, by=None, armed=serials(*armed))

    def finish(self, run: Run) -> Run:
        """Wait as long as its trials end within the limit: a run may have many."""

        def ended() -> int:
            return run.trials.filter(ended_at__isnull=False).count()

        def is_over() -> bool:
            run.refresh_from_db()
            return run.state not in OPEN_RUN_STATES

        while not is_over():
            before = ended()
            self.wait_until(lambda before=before: is_over() or ended() > before, f"{run} ends, or a trial of it")  # type: ignore[misc]
        return run

    def await_measuring(self, run: Run, done: int = 0) -> None:
        """Wait until `done` trials have ended and another one measures."""

        def measuring() -> bool:
            active = Attempt.objects.filter(run=run, trial__isnull=False, state__in=ACTIVE_ATTEMPT_STATES)
            return run.trials.filter(ended_at__isnull=False).count() >= done and (
                active.filter(started_at__isnull=False).exists()
            )

        self.wait_until(measuring, f"{run} measures")

    # ---- inventory and purges

    def take_inventory(self) -> Inventory:
        """Request an inventory and wait for it. Raises ToolError."""
        self.wait_until(
            lambda: not Attempt.objects.filter(host=self.host, state__in=ACTIVE_ATTEMPT_STATES).exists(), "idle"
        )
        inventory_now(host=self.host, by=None)
        asked = Attempt.objects.filter(host=self.host).latest("created_at")

        def answered() -> bool:
            asked.refresh_from_db()
            return asked.ended_at is not None

        self.wait_until(answered, "the inventory arrives")
        if asked.outcome:
            raise ToolError(f"The inventory was not taken: {asked.outcome}")
        taken = HostInventory.objects.filter(host=self.host).select_related("content").latest("taken_at")
        return msgspec.convert(taken.content.facts, Inventory)

    def purge(self, slug: str, method: str) -> HostAction:
        target = self.target(slug)
        action = purge_drive(target=target, method=method, serial=target.arming_serial, why="lab", by=None)

        def over() -> bool:
            action.attempt.refresh_from_db()
            return action.attempt.ended_at is not None

        self.wait_until(over, f"{slug} is purged by {method}")
        return action


def differences(before: Inventory, after: Inventory) -> list[str]:
    """The product's own comparison of two inventories, without facts that change with every restart."""
    restarted = before.kernel.boot_id != after.kernel.boot_id
    return [
        f"{found.kind} {found.identity}: {found.change.name} {found.fact}: {found.before} → {found.after}"
        for found in inventory_differences(before, after)
        if not (restarted and found.fact in NEW_AFTER_RESTART)
    ]


def not_done(run: Run) -> list[str]:
    """Trials that are not done, with their reasons; or the run if it is not done."""
    trials = run.trials.exclude(state="done").order_by("index")
    said = [f"{run}, trial {t.number}: {t.state} {t.reason_code}: {t.reason}" for t in trials]
    return said if said or run.state == "done" else [f"{run} ended as {run.state} {run.reason_code}: {run.reason}"]


def not_as_asked(run: Run) -> list[str]:
    """Layouts whose observed value differs from the requested one, and changes that were not restored.

    Settings need no comparison here: a setting that differs fails its trial.
    """
    built = SettingChange.objects.filter(attempt__run=run, restoring=False, name=LAYOUT)
    wrong = [c for c in built if c.asked != c.observed]
    return [
        *(f"{run}: {c.name} of {c.device}: requested {c.asked}, observed {c.observed}" for c in wrong),
        *(text for _, text in not_restored(run)),
    ]


def not_restored(run: Run) -> list[tuple[SettingChange, str]]:
    """Settings and layouts that were not restored, each with a line that says so."""
    changes = SettingChange.objects.filter(attempt__run=run, restoring=True, restored=False)
    return [(c, f"{run}: {c.name} of {c.device} was not restored to {c.asked}: {c.note}") for c in changes]


def layouts_built(run: Run) -> dict[str, str]:
    """Requested layout -> observed layout."""
    changes = SettingChange.objects.filter(attempt__run=run, name=LAYOUT, restoring=False)
    return dict(changes.values_list("asked", "observed"))


def locks() -> list[str]:
    return [f"{lock.lock_key} is locked" for lock in TargetLock.objects.all()]
