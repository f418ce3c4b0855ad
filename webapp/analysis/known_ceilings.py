"""Ceilings that are known of results: the links of measured targets, and what people entered or is published of
controllers, backplanes, hosts and imports.

A plateau is only held against the ceilings of its own series. Findings say that it matches, not that it is the cause.
Published tables name their controller, not its link, so `PUBLISHED` has the host links of two of them. Sources: Arthur
Whalem, review of the Areca ARC-1680ix-12, AMUG, 15 August 2008 (eight lanes of 250 MB/s); Dirk Geschke,
"RAID-Optimierungen", Linux User Group Erding, 28 November 2012 (LSI 9266-8i at PCI Express 2.0 x8).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from webapp.analysis.models import EnteredCeiling
from webapp.analysis.trial_metrics import moments_of
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.inventory.ceilings import MAX_BOUNDS, Bound, bounds_of
from webapp.hosts.inventory.links import Interval, Link, read_link, shared
from webapp.results.models import Import
from webapp.results.reading.rows import ResultRow
from worker.contract.workload import Pattern

PUBLISHED: Mapping[str, str] = {
    "Areca ARC-1680IX-12": "PCIe 1.0 x8",
    "LSI MegaRAID SAS 9266-8i": "PCIe 2.0 x8",
}
BACKPLANE = "backplane"  # label of imports
MAX_NAME, MOST_OF_OWNER = 200, 8
MOST_STATED = 50
LINK_FACT, NUMA_FACT = "link to the processor", "NUMA node"
_MIXED = frozenset(pattern.value for pattern in Pattern if pattern.mixed)
Kind = EnteredCeiling.Kind
Owner = tuple[str, str]  # kind and name


@dataclass(frozen=True)
class OwnedLink:
    owner: Owner
    link: Link
    text: str  # as it was entered
    source: str  # `entered` or `published`


@dataclass(frozen=True)
class KnownCeilings:
    """`by_target`: of each target that had the name, the links that carry all of its traffic."""

    of_targets: tuple[Bound, ...]  # the lowest first
    of_owners: tuple[Bound, ...]
    by_target: Mapping[str, Sequence[Sequence[Link]]]
    by_owner: Mapping[Owner, Sequence[Link]]
    numa_nodes: Mapping[str, int] = field(default_factory=dict)  # by target, if it has one

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """For a chart."""
        return (*self.of_targets[:MAX_BOUNDS], *self.of_owners)

    def common(self, rows: Iterable[ResultRow]) -> tuple[Link, ...]:
        """Those that every row has. None for mixed reads and writes: a link carries both directions at once."""
        listed = list(rows)
        if any(row.point.get("pattern") in _MIXED for row in listed):
            return ()
        places = {(row.target_name, *owners_of(row)): row for row in listed}
        links = shared([self._of(row) for row in places.values()])
        return tuple({link.name: link for link in links}.values())

    def equipment(self, target: str) -> dict[str, str]:
        """The links and the NUMA node of a target, as facts, from the inventory at the time of its results."""
        links = shared(self.by_target.get(target, ()))
        facts = {LINK_FACT: ", ".join(link.name for link in links)} if links else {}
        return facts | ({NUMA_FACT: str(self.numa_nodes[target])} if target in self.numa_nodes else {})

    def _of(self, row: ResultRow) -> list[Link]:
        owned = [link for owner in owners_of(row) for link in self.by_owner.get(owner, ())]
        return [*owned, *shared(self.by_target.get(row.target_name, ()))]


NOTHING_KNOWN = KnownCeilings((), (), {}, {})


def owners_of(row: ResultRow) -> tuple[Owner, ...]:
    """What a person can enter a ceiling for, and this result has."""
    owners = [
        (Kind.CONTROLLER, row.controller),
        (Kind.BACKPLANE, row.facts.get(BACKPLANE, "")),
        (Kind.HOST, row.host),
        (Kind.IMPORT, str(row.imported or "")),
    ]
    return tuple((kind.value, name) for kind, name in owners if name)


def import_owners(imported: Import) -> tuple[Owner, ...]:
    """The import itself, and what its results name. One query."""
    stated = imported.origins.values_list("controller", f"other__{BACKPLANE}", "host").distinct()[:MOST_STATED]
    kinds = (Kind.CONTROLLER, Kind.BACKPLANE, Kind.HOST)
    named = {(kind.value, name) for row in stated for kind, name in zip(kinds, row, strict=True) if name}
    return (Kind.IMPORT.value, str(imported.number)), *sorted(named)


def known_ceilings(rows: Sequence[ResultRow]) -> KnownCeilings:
    """Of the results. Five queries."""
    measured = bounds_of(moments_of(row for row in rows if row.trial_id), most=None)
    by_target: dict[str, list[Sequence[Link]]] = {}
    for bound in measured:
        by_target.setdefault(bound.target, []).append(bound.links)
    owned = _owned(rows)
    by_owner: dict[Owner, list[Link]] = {}
    for each in owned:
        by_owner.setdefault(each.owner, []).append(each.link)
    nodes: dict[str, set[int | None]] = {}
    for bound in measured:
        nodes.setdefault(bound.target, set()).add(bound.numa_node)
    numa_nodes = {target: node for target, (node, *more) in nodes.items() if node is not None and not more}
    return KnownCeilings(measured, tuple(map(_bound, owned)), by_target, by_owner, numa_nodes)


def entered_bounds(rows: Iterable[ResultRow]) -> tuple[Bound, ...]:
    """Of the owners of the results, without those of measured targets. One query."""
    return tuple(map(_bound, _owned(rows)))


def _owned(rows: Iterable[ResultRow]) -> list[OwnedLink]:
    return owned_links(dict.fromkeys(owner for row in rows for owner in owners_of(row)))


def owned_links(owners: Iterable[Owner]) -> list[OwnedLink]:
    """Entered ceilings, and published ones of controllers without one. One query."""
    wanted = list(owners)
    entered = EnteredCeiling.objects.filter(name__in={name for _, name in wanted}) if wanted else ()
    texts: dict[Owner, list[str]] = {}
    for each in entered:
        texts.setdefault((each.kind, each.name), []).append(each.text)
    links = []
    for owner in wanted:
        links += [OwnedLink(owner, read_link(text), text, "entered") for text in texts.get(owner, ())]
        if owner not in texts and owner[0] == Kind.CONTROLLER and owner[1] in PUBLISHED:
            links.append(OwnedLink(owner, read_link(PUBLISHED[owner[1]]), PUBLISHED[owner[1]], "published"))
    return links


def _bound(owned: OwnedLink) -> Bound:
    kind, name = owned.owner
    link, place = owned.link, f"import {name}" if kind == Kind.IMPORT else name
    practical = Interval(link.low_bytes_per_s, min(link.high_bytes_per_s, link.bytes_per_s), owned.source)
    return Bound(f"{link.name} of {place}", link.bytes_per_s, "", practical, (link,))


@transaction.atomic
def enter_ceiling(*, kind: str, name: str, text: str, by: User) -> EnteredCeiling:
    """Safe to repeat. Raises Refusal for a text that states no ceiling, and for too many of one owner."""
    if kind not in Kind.values or not 0 < len(name) <= MAX_NAME:
        message = f"A ceiling is entered for a {', a '.join(Kind.values)}, with its name."
        raise Refusal("ceiling_owner_unknown", message)
    read_link(text)
    made, created = EnteredCeiling.objects.get_or_create(
        kind=kind, name=name, text=" ".join(text.split()), defaults={"set_by": by}
    )
    if EnteredCeiling.objects.filter(kind=kind, name=name).count() > MOST_OF_OWNER:
        raise Refusal("ceilings_too_many", f"{name} has {MOST_OF_OWNER} ceilings. Remove one first.")
    if created:
        audit(by=by, action="ceiling.enter", on=made)
    return made


@transaction.atomic
def remove_ceiling(*, kind: str, name: str, text: str, by: User) -> bool:
    """Whether there was one."""
    ceiling = EnteredCeiling.objects.filter(kind=kind, name=name, text=text).first()
    if ceiling is None:
        return False
    audit(by=by, action="ceiling.remove", on=ceiling)
    ceiling.delete()
    return True
