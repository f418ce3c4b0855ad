"""Purges that the guest's drives support: NVMe format and discard, on request and before a trial."""

from dev.console import say, step
from dev.lab.storage_host import NVME, SATA
from dev.lab.system import System, not_done
from webapp.plans.document import Order, Part, PlanDocument
from webapp.results.models import Result
from webapp.results.reading.rows import read_rows
from worker.contract.inventory import PurgeMethod

SOME = {"pattern": "randwrite", "ioengine": "psync", "block_size": "64k", "amount": "8M"}
# QEMU's NVMe drive supports neither cryptographic erase nor sanitize; its SATA drive has no security feature set.
METHODS = {NVME: (PurgeMethod.NVME_FORMAT, PurgeMethod.DISCARD), SATA: (PurgeMethod.DISCARD,)}


def purges(system: System) -> list[str]:
    """The problems."""
    return [problem for slug, wanted in METHODS.items() for problem in _of(system, slug, wanted)]


def _of(system: System, slug: str, wanted: tuple[PurgeMethod, ...]) -> list[str]:
    offers = dict.fromkeys(wanted, "not reported") | {
        offer["method"]: offer.get("problem", "") for offer in system.target(slug).purges
    }
    for method, problem in offers.items():
        say(f"    {slug} {method}: {problem or 'offered'}")
    problems = [f"{slug} does not offer {method}: {offers[method]}" for method in wanted if offers[method]]
    for method in wanted:
        if not offers[method]:
            with step(f"{slug} by {method}"):
                problems += _on_request(system, slug, method) + _in_a_plan(system, slug, method)
    return problems


def _on_request(system: System, slug: str, method: PurgeMethod) -> list[str]:
    attempt = system.purge(slug, method).attempt
    if attempt.state != "done" or not attempt.purged:
        return [f"{slug} by {method}: {attempt.state} {attempt.outcome_code}: {attempt.outcome}"]
    (purged,) = attempt.purged
    say(f"      {'; '.join(purged['commands'])}: {purged['samples_not_zero']} of {purged['samples']} samples not zero")
    return []


def document(slug: str, method: PurgeMethod) -> PlanDocument:
    parts = (Part(name="some", factors=SOME), Part(name="purged", factors={**SOME, "purge": method.value}))
    return PlanDocument(title=f"Purge {slug} {method}", parts=parts, repeats=1, order=Order.LISTED)


def _in_a_plan(system: System, slug: str, method: PurgeMethod) -> list[str]:
    """Check the recorded state of the drive before each trial: written, purged, written."""
    run = system.finish(system.start(document(slug, method), slug, armed=(slug,)))
    found = read_rows(Result.objects.filter(run=run).order_by("trial__index"))
    states = [result.drive_state for result in found]
    wrong = [] if states == ["purged", "purged"] else [f"{run}: {slug} was {states} before its trials"]
    return [*not_done(run), *wrong]
