"""The whole of it: Sweetspot's server outside, the worker as a service in the guest. Only after the server has started.

What happens is asked of the product itself (runs, setting changes, locks, inventories), what is left on the drives
of Debian's own programs in the guest.
"""

from collections.abc import Callable, Sequence

import msgspec

from dev.console import ToolError, step
from dev.lab.machine import Machine
from dev.lab.server import Server
from dev.lab.storage_host import BAYS, StorageHost, serials
from dev.stack.network import await_condition
from webapp.hosts.differences import fact_changes
from webapp.hosts.installer import install_line
from webapp.hosts.keys import signing_key
from webapp.hosts.models import Host, HostSnapshot, Target
from webapp.hosts.services import issue_enrolment_token
from webapp.plans.document import PlanDocument
from webapp.plans.services import create_plan
from webapp.runs.host_actions import inventory_now, purge_drive
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
LIMIT_S = 1800.0  # software emulation on a busy machine
LAYOUT = "layout"
ANEW = ("kernel, boot id", "name", "path", "major minor", "devices", "interrupts", "controllers")


class System:
    def __init__(self, machine: Machine, server: Server, storage: StorageHost) -> None:
        self.machine = machine
        self.storage = storage
        self._server = server

    # ---- the guest becomes a host

    def install(self) -> None:
        """By the very line that the page “Add host” shows. Raises ToolError."""
        with step("what an administrator sees to: name, authority, pip's packages"):
            self.storage.prepare(self._server.authority)
        with step("the line of “Add host”, pasted into a root shell of the guest"):
            key, _ = signing_key()
            self.storage.paste(install_line(token=issue_enrolment_token(by=None, slug=SLUG), key=key, again=False))
            self.storage.allow()
        with step("its worker greets, with its drives"):
            self.until(lambda: self._drives_there() == len(BAYS), "the drives of its policy are there")

    def _drives_there(self) -> int:
        return Target.objects.filter(host__slug=SLUG, slug__in=BAYS, in_policy=True, present=True).count()

    @property
    def host(self) -> Host:
        return Host.objects.get(slug=SLUG)

    def target(self, slug: str) -> Target:
        return Target.objects.select_related("host").get(host__slug=SLUG, slug=slug, in_policy=True)

    # ---- waiting

    def until(self, condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
        if not await_condition(condition, limit_s=limit_s):
            raise ToolError(f"{what}: not within {limit_s:.0f} s. The worker's log ends with:\n{self.storage.log()}")

    # ---- runs

    def start(self, document: PlanDocument, *slugs: str, armed: Sequence[str] = BAYS) -> Run:
        """Every drive of the pool is armed unless fewer are named."""
        version = create_plan(document=document, by=None).versions.get()
        targets = [self.target(slug) for slug in slugs]
        return start_run(version=version, targets=targets, by=None, armed=serials(*armed))

    def finish(self, run: Run) -> Run:
        def ended() -> bool:
            run.refresh_from_db()
            return run.state not in OPEN_RUN_STATES

        self.until(ended, f"{run} ends")
        return run

    def until_measuring(self, run: Run, done: int = 0) -> None:
        """A trial measures now, and so many have ended."""

        def measuring() -> bool:
            active = Attempt.objects.filter(run=run, trial__isnull=False, state__in=ACTIVE_ATTEMPT_STATES)
            return run.trials.filter(ended_at__isnull=False).count() >= done and (
                active.filter(started_at__isnull=False).exists()
            )

        self.until(measuring, f"{run} measures")

    # ---- what it says of itself

    def look(self) -> Inventory:
        """The host takes its inventory because it is asked to."""
        self.until(lambda: not Attempt.objects.filter(host=self.host, state__in=ACTIVE_ATTEMPT_STATES).exists(), "idle")
        inventory_now(host=self.host, by=None)
        asked = Attempt.objects.filter(host=self.host).latest("created_at")

        def answered() -> bool:
            asked.refresh_from_db()
            return asked.ended_at is not None

        self.until(answered, "the inventory comes")
        if asked.outcome:
            raise ToolError(f"The inventory was not taken: {asked.outcome}")
        taken = HostSnapshot.objects.filter(host=self.host).select_related("snapshot").latest("taken_at")
        return msgspec.convert(taken.snapshot.facts, Inventory)

    def purge(self, slug: str, method: str) -> HostAction:
        target = self.target(slug)
        action = purge_drive(target=target, method=method, serial=target.arming_serial, why="lab", by=None)

        def over() -> bool:
            action.attempt.refresh_from_db()
            return action.attempt.ended_at is not None

        self.until(over, f"{slug} is purged by {method}")
        return action


def differences(before: Inventory, after: Inventory) -> list[str]:
    """The product's own difference of two looks, without what every restart of the guest gives anew."""
    restarted = before.kernel.boot_id != after.kernel.boot_id
    return [
        f"{change.where}: {change.what}: {change.before or '–'} → {change.after or '–'}"
        for change in fact_changes(before, after)
        if not (restarted and change.what in ANEW)
    ]


def not_done(run: Run) -> list[str]:
    """Trials that did not end as done, with their reason; and a run that ended otherwise."""
    trials = run.trials.exclude(state="done").order_by("index")
    said = [f"{run}, trial {t.number}: {t.state} {t.reason_code}: {t.reason}" for t in trials]
    return said if said or run.state == "done" else [f"{run} ended as {run.state} {run.reason_code}: {run.reason}"]


def not_as_asked(run: Run) -> list[str]:
    """Layouts that were observed otherwise than they were asked for, and what was not put back.

    A setting that was observed otherwise fails its trial; some are asked for in other words than they are read in.
    """
    changes = SettingChange.objects.filter(attempt__run=run)
    wrong = [c for c in changes.filter(restoring=False, name=LAYOUT) if c.asked != c.observed]
    left = changes.filter(restoring=True, restored=False)
    return [
        *(f"{run}: {c.name} of {c.device}: asked {c.asked}, observed {c.observed}" for c in wrong),
        *(f"{run}: {c.name} of {c.device} was not put back to {c.asked}: {c.note}" for c in left),
    ]


def layouts_built(run: Run) -> dict[str, str]:
    """What was asked for and what was read back."""
    changes = SettingChange.objects.filter(attempt__run=run, name=LAYOUT, restoring=False)
    return dict(changes.values_list("asked", "observed"))


def locks() -> list[str]:
    return [f"{lock.lock_key} is locked" for lock in TargetLock.objects.all()]
