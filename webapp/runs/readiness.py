"""Checks before a run starts: hosts online, capabilities available, drives armed."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.formatting import bytes_decimal
from webapp.hosts.maintenance_windows import open_window
from webapp.hosts.models import Host, HostState, Target
from webapp.hosts.sessions import second_worker_words
from webapp.plans.destruction import destroyed
from webapp.plans.endurance import EnduranceUse, endurance_uses
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, PlannedTrial
from webapp.plans.host_support import capabilities, missing_parts
from webapp.runs.arming import refuse_untyped
from webapp.runs.dispatch.queue import HEARD_WITHIN_SECONDS
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD


def refuse_unfit_hosts(targets: Sequence[Target]) -> None:
    """Check targets and hosts. Raises Refusal for the first one that cannot be used now."""
    if not targets:
        raise Refusal("target_unavailable", "Choose at least one target.")
    for target in targets:
        refuse_target(target)
        refuse_host(target.host)


def refuse_target(target: Target) -> None:
    if not target.in_policy:
        raise Refusal("target_unavailable", f"{target} is no longer in the policy file of its host.")
    if not target.present:
        why = target.problem or "not found"
        raise Refusal("target_unavailable", f"{target} is unavailable: {why}.")


def refuse_host(host: Host, *, also_in_maintenance: bool = False) -> None:
    """Raises Refusal if the host cannot take orders now. Host actions are allowed during maintenance."""
    usable = (HostState.ACTIVE, HostState.MAINTENANCE) if also_in_maintenance else (HostState.ACTIVE,)
    if host.state not in usable:
        raise Refusal("host_unavailable", f"Host {host} is {host.get_state_display().lower()} and takes no runs.")
    if not also_in_maintenance and (window := open_window(host.pk)):
        raise Refusal("host_unavailable", f"Host {host} is {window} and takes no runs.")
    if second := second_worker_words(host):
        raise Refusal("host_unavailable", f"Host {host}: {second}")
    heard_since = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    if host.last_seen_at is None or host.last_seen_at < heard_since:
        raise Refusal("host_unavailable", f"Host {host} is offline. Check that its worker is running.")
    if not OLDEST_UNDERSTOOD <= host.contract <= CONTRACT_VERSION:
        raise Refusal(
            "host_unavailable", f"The worker of host {host} uses another contract version. Update the worker."
        )


def refuse_unfit_trials(trials: Iterable[PlannedTrial], targets: Sequence[Target]) -> None:
    """Raises Refusal with everything that the plan needs and a host does not support."""
    for host in {target.host for target in targets}:
        if capabilities(host) is None:
            raise Refusal(
                "host_unavailable", f"Host {host} has not reported its capabilities yet. Wait a minute and try again."
            )
    if missing := missing_parts(trials, targets):
        raise Refusal(
            "capability_missing",
            f"Not supported by the host: {'; '.join(missing)}. Remove these levels in a copy of the plan, or choose "
            "another host.",
        )


def refuse_worn(expansion: Expansion, targets: Sequence[Target]) -> None:
    """Raises Refusal if more could be written to a drive than its host's policy or its remaining rated endurance
    allows."""
    for use in endurance_uses(expansion, estimate(expansion), targets):
        if use.over_limit:
            raise Refusal("write_limit_exceeded", _over_limit(use))
        if use.too_much:
            raise Refusal("endurance_exceeded", _too_much(use))


def _over_limit(use: EnduranceUse) -> str:
    return (
        f"The plan could write {bytes_decimal(use.bytes_most)} to {use.target}, but the policy of its host allows "
        f"{bytes_decimal(use.limit_bytes)} per run (max_write_bytes). Write less, for example "
        "with an amount instead of a run time."
    )


def _too_much(use: EnduranceUse) -> str:
    rating, left = use.endurance.rating, use.endurance.left_bytes
    assert rating is not None
    return (
        f"The plan could write {bytes_decimal(use.bytes_most)} to {use.target}, but of its rated endurance of "
        f"{bytes_decimal(rating.rated_bytes)} ({rating.source}) {bytes_decimal(left)} is left. Write less, for example "
        "with an amount instead of a run time, or delete the rating on the page of the target."
    )


def refuse_unarmed(trials: Iterable[PlannedTrial], targets: Sequence[Target], armed: Sequence[str]) -> None:
    """Raises Refusal unless the policy allows overwriting every destroyed target and its serial was typed."""
    taken = destroyed(trials, targets)
    for target in taken:
        if not target.destroy:
            raise Refusal(
                "not_destroyable",
                f"The plan overwrites {target}, but the policy of its host does not allow that. "
                "Its administrator can set destroy = true for it.",
            )
    refuse_untyped(taken, armed)
