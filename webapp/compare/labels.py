"""What follows from the label of a host in its group, where labels are compared.

While each label belongs to a different host, its host, targets, drives and runs are what is compared, not a second
cause.
"""

from collections.abc import Iterable, Sequence

from webapp.compare.dimensions import LABEL, Row, label_of
from webapp.compare.grouping import Grouped
from webapp.compare.query import CompareQuery
from webapp.compare.structs import Difference, DifferenceKind
from webapp.hosts.names import NO_LABEL

_LISTED = 4


def of_labels(found: Sequence[Difference], query: CompareQuery, grouped: Grouped) -> list[Difference]:
    """The differences, with those told that follow from labels; labels that stand for several hosts are added."""
    if LABEL not in query.dimensions:
        return list(found)
    hosts: dict[str, set[str]] = {}
    for there in grouped.cells.values():
        for row in there:
            hosts.setdefault(row.label, set()).add(row.host)
    several = {label: names for label, names in hosts.items() if len(names) > 1}
    if several and not {"host", "target"} & set(query.dimensions):
        return [*found, *(_of_several_hosts(label, names) for label, names in several.items())]
    each_another = not several and len(set[str]().union(*hosts.values())) == len(hosts)
    return [_told(one, query, grouped) if each_another else one for one in found]


def _of_several_hosts(label: str, hosts: Iterable[str]) -> Difference:
    known = sorted(hosts)
    listed = ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")
    named = f"The label “{label}”" if label else f"“{NO_LABEL}”"
    text = f"{named} stands for several hosts ({listed}); its values combine all of them."
    return Difference(kind=DifferenceKind.POOLED, name="host", label=label_of("host"), text=text)


def _told(one: Difference, query: CompareQuery, grouped: Grouped) -> Difference:
    if one.kind is DifferenceKind.CONFOUNDED and LABEL in query.series and _follows(one.name, grouped):
        words = "differs between series"
    elif one.kind is DifferenceKind.ALONG_X and query.x == LABEL and one.name == "target":
        words = "changes along x"
    else:
        return one
    text = f"{one.label} {words} because each label belongs to a different host."
    return Difference(kind=DifferenceKind.FOLLOWS, name=one.name, label=one.label, text=text)


def _follows(name: str, grouped: Grouped) -> bool:
    """Whether series of one label have the same targets, or a run in common, at each place."""
    if name not in ("target", "run"):
        return False
    found: dict[tuple[str, str, str], list[frozenset[object]]] = {}
    for (panel, _, x), there in grouped.cells.items():
        own = frozenset(_value(row, name) for row in there)
        found.setdefault((there[0].label, panel, x), []).append(own)
    if name == "run":
        return all(frozenset.intersection(*sets) for sets in found.values())
    return all(len(set(sets)) == 1 for sets in found.values())


def _value(row: Row, name: str) -> object:
    return row.run if name == "run" else row.target
