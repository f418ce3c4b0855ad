"""The legs of a trial: which share a target, and which of those asks for most."""

from worker import recipes
from worker.contract.workload import Leg


def by_target(legs: tuple[Leg, ...]) -> list[list[Leg]]:
    """Legs at the same target together: a device can be held only once."""
    groups: dict[tuple[str, str], list[Leg]] = {}
    for leg in legs:
        groups.setdefault((leg.target.stable_id, leg.target.path), []).append(leg)
    return list(groups.values())


def strictest(legs: list[Leg]) -> Leg:
    """The leg that asks for most: what is allowed to it is allowed to the others."""
    return max(legs, key=lambda leg: (leg.workload.pattern.writes, (leg.workload.size_bytes or 0) * leg.workload.files))


def amount(leg: Leg) -> str:
    """What is written before a leg, in words."""
    size = leg.workload.size_bytes
    what = f"{leg.workload.files} file(s)" if recipes.render(leg).files else "the device"
    return f"{what} of {size} bytes" if size else what
