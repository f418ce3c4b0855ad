"""Upper bounds of measured targets, one line each for a chart: the bound and its link."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, product

from django.db.models import Q

from webapp.hosts.inventory.ceilings import Ceiling, Chain, Interval, chain_of
from webapp.hosts.inventory.reading import inventories_at
from webapp.hosts.models import Target
from webapp.hosts.names import parted

MAX_BOUNDS = 6  # lines in one chart
MAX_WAYS = 16  # drives that had the names of a target one after the other, for several targets their combinations


@dataclass(frozen=True)
class Bound:
    """`realistic` is the practical throughput of the limiting link from a published source; usually None."""

    target: str  # host/target, or the common name of several targets at once
    bytes_per_s: float
    words: str
    realistic: Interval | None = None


def bounds_of(moments: Mapping[str, datetime], most: int | None = MAX_BOUNDS) -> tuple[Bound, ...]:
    """Bounds by name of a target (`host/target`, or several at once), from the host's inventory at the given time.

    Targets without a known bound are left out. For several targets at once it is the bound of their sum, in which a
    shared link counts once. Three queries. Returns at most `most`, lowest bounds first.
    """
    ways = list(_ways(moments))
    inventories = inventories_at({(targets[0].host_id, at) for _, targets, at in ways})
    found = []
    for name, targets, at in ways:
        inventory = inventories.get((targets[0].host_id, at))
        bound = bound_of(name, chain_of(inventory, *(target.device for target in targets))) if inventory else None
        found += [bound] if bound else []
    ordered = sorted(found, key=lambda each: (each.bytes_per_s, each.target))
    return tuple((_folded(ordered) if any(len(parted(name)[1]) > 1 for name in moments) else ordered)[:most])


def _ways(moments: Mapping[str, datetime]) -> Iterator[tuple[str, tuple[Target, ...], datetime]]:
    """The targets that a name may mean: drives that had it one after the other."""
    known = _targets(moments)
    for name, at in moments.items():
        host, slugs = parted(name)
        each = product(*(known.get((host, slug), ()) for slug in slugs))
        yield from ((name, targets, at) for targets in islice(each, MAX_WAYS))


def _folded(found: Iterable[Bound]) -> list[Bound]:
    """If targets were used alone and in groups: each bound once for a host and a number of targets."""
    alike: dict[tuple[str, int, float], list[Bound]] = {}
    for each in found:
        host, slugs = parted(each.target)
        alike.setdefault((host, len(slugs), each.bytes_per_s), []).append(each)
    return [_one_of(bounds) for bounds in alike.values()]


def _one_of(alike: Sequence[Bound]) -> Bound:
    if len(alike) == 1:
        return alike[0]
    return replace(alike[0], target=f"{alike[0].target} (and {len(alike) - 1} alike)")


def _targets(names: Iterable[str]) -> Mapping[tuple[str, str], list[Target]]:
    """Targets with a known device, by host and slug. The slug may have belonged to another drive before."""
    wanted = Q()
    for host, slugs in map(parted, names):
        wanted |= Q(host__slug=host, slug__in=slugs)
    found: dict[tuple[str, str], list[Target]] = {}
    for target in Target.objects.filter(wanted).select_related("host").exclude(device="") if wanted else ():
        found.setdefault((target.host.slug, target.slug), []).append(target)
    return found


def bound_of(target: str, chain: Chain) -> Bound | None:
    """None if no bound is known."""
    if chain.bytes_per_s is None:
        return None
    words, realistic = _limiting(chain.ceilings, chain.bytes_per_s)
    return Bound(target, chain.bytes_per_s, words, realistic)


def _limiting(ceilings: tuple[Ceiling, ...], total: float) -> tuple[str, Interval | None]:
    """The single ceiling that is as low as the total; else the ceilings of one kind that add up to it."""
    for each in ceilings:
        if math.isclose(each.bytes_per_s, total):
            degraded = ", degraded" if each.degraded else ""
            return f"{each.kind} of {each.where}{degraded} ({each.formula})", each.realistic
    for kind in dict.fromkeys(each.kind for each in ceilings):
        alike = [each for each in ceilings if each.kind == kind]
        if math.isclose(sum(each.bytes_per_s for each in alike), total):
            return f"{len(alike)} × {kind} ({alike[0].formula} each)", _together([each.realistic for each in alike])
    return "several links together", None


def _together(intervals: list[Interval | None]) -> Interval | None:
    known = [each for each in intervals if each]
    if not known or len(known) < len(intervals):
        return None
    low, high = sum(each.low_bytes_per_s for each in known), sum(each.high_bytes_per_s for each in known)
    return Interval(low, high, known[0].source)
