"""Checks before a run starts: hosts online, capabilities available, drives armed."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.formatting import bytes_decimal
from webapp.hosts.maintenance_windows import open_window
from webapp.hosts.models import Host, HostState, Target
from webapp.plans.destruction import destroyed
from webapp.plans.endurance import EnduranceUse, endurance_uses
from webapp.plans.expand import Expansion, PlannedTrial
from webapp.runs.arming import refuse_untyped
from webapp.runs.dispatch.dispatcher import HEARD_WITHIN_SECONDS
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD
from worker.contract.inventory import Capabilities
from worker.recipes import missing_features
from worker.recipes.layouts import needed


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
    heard_since = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    if host.last_seen_at is None or host.last_seen_at < heard_since:
        raise Refusal("host_unavailable", f"Host {host} is offline. Check that its worker is running.")
    if not OLDEST_UNDERSTOOD <= host.contract <= CONTRACT_VERSION:
        raise Refusal(
            "host_unavailable", f"The worker of host {host} uses another contract version. Update the worker."
        )


def refuse_unfit_trials(trials: Iterable[PlannedTrial], targets: Sequence[Target]) -> None:
    """Raises Refusal with all capabilities that the plan needs and a host does not have."""
    offered = {str(target.pk): _capabilities(target.host) for target in targets}
    hosts = {str(target.pk): target.host.slug for target in targets}
    missing = {
        f"{hosts[target_id]}: {lack}"
        for trial in trials
        for target_id in trial.target_ids
        for lack in _lacks(trial, offered[target_id])
    }
    if missing:
        raise Refusal("capability_missing", "Not supported by the host: " + "; ".join(sorted(missing)) + ".")


def _capabilities(host: Host) -> Capabilities:
    try:
        return msgspec.convert(host.capabilities, Capabilities)
    except msgspec.ValidationError as error:
        raise Refusal(
            "host_unavailable", f"Host {host} has not reported its capabilities yet. Wait a minute and try again."
        ) from error


def _lacks(trial: PlannedTrial, offered: Capabilities) -> list[str]:
    lacks = missing_features(trial.workload, offered.engines)
    lacks += (
        [f"layouts with {part}" for part in needed(trial.layout) if part not in offered.layouts] if trial.layout else []
    )
    return lacks + [f"setting {name}" for name in trial.settings if name not in offered.settings]


def refuse_worn(expansion: Expansion, targets: Sequence[Target]) -> None:
    """Raises Refusal if more could be written to a drive than its host's policy or its remaining rated endurance
    allows."""
    for use in endurance_uses(expansion, targets):
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
