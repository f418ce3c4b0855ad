"""Differences that follow from the labels of hosts in their groups.

If labels are compared and each label belongs to a different host, then hosts, targets, drives and runs are part of the
comparison, not a second cause.
"""

from collections.abc import Iterable, Sequence

from webapp.compare.comparison import Difference, DifferenceKind
from webapp.compare.dimensions import LABEL, label_of
from webapp.compare.grouping import Grouped
from webapp.compare.query import CompareQuery
from webapp.hosts.names import NO_LABEL
from webapp.results.reading.rows import ResultRow

_LISTED = 4


def of_labels(found: Sequence[Difference], query: CompareQuery, grouped: Grouped) -> list[Difference]:
    """Mark the differences that follow from labels, and add labels that stand for several hosts."""
    if LABEL not in query.dimensions:
        return list(found)
    hosts: dict[str, set[str]] = {}
    for rows in grouped.cells.values():
        for row in rows:
            hosts.setdefault(row.label, set()).add(row.host)
    several = {label: names for label, names in hosts.items() if len(names) > 1}
    if several and not {"host", "target"} & set(query.dimensions):
        return [*found, *(_of_several_hosts(label, names) for label, names in several.items())]
    each_another = not several and len(set[str]().union(*hosts.values())) == len(hosts)
    return [_marked(one, query, grouped) if each_another else one for one in found]


def _of_several_hosts(label: str, hosts: Iterable[str]) -> Difference:
    known = sorted(hosts)
    listed = ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")
    named = f"The label “{label}”" if label else f"“{NO_LABEL}”"
    text = f"{named} stands for several hosts ({listed}); its values combine all of them."
    return Difference(kind=DifferenceKind.POOLED, name="host", label=label_of("host"), text=text)


def _marked(one: Difference, query: CompareQuery, grouped: Grouped) -> Difference:
    if one.kind is DifferenceKind.CONFOUNDED and LABEL in query.series and _follows(one.name, grouped):
        words = "differs between series"
    elif one.kind is DifferenceKind.ALONG_X and query.x == LABEL and one.name == "target":
        words = "changes along x"
    else:
        return one
    text = f"{one.label} {words} because each label belongs to a different host."
    return Difference(kind=DifferenceKind.FOLLOWS, name=one.name, label=one.label, text=text)


def _follows(name: str, grouped: Grouped) -> bool:
    """Whether series with the same label have the same targets, or share a run, at each chart point."""
    if name not in ("target", "run"):
        return False
    found: dict[tuple[str, str, str], list[frozenset[object]]] = {}
    for (panel, _, x), rows in grouped.cells.items():
        own = frozenset(_value(row, name) for row in rows)
        found.setdefault((rows[0].label, panel, x), []).append(own)
    if name == "run":
        return all(frozenset.intersection(*sets) for sets in found.values())
    return all(len(set(sets)) == 1 for sets in found.values())


def _value(row: ResultRow, name: str) -> object:
    return row.run if name == "run" else row.target_name
