"""Compares two versions of a plan, field by field."""

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.plans.document import Order, Part, PlanDocument
from webapp.plans.factors import FACTORS, by_cost

_ORDERS = {Order.LISTED: "as listed", Order.RANDOMISED: "randomised within each repeat"}


@dataclass(frozen=True)
class Difference:
    """`where` is the name of a part, or "" for the whole plan; "" in `before` or `after` means absent."""

    where: str
    what: str
    before: str
    after: str

    @property
    def verb(self) -> str:
        if not self.before:
            return "added"
        return "changed" if self.after else "removed"


def differences(before: PlanDocument, after: PlanDocument) -> tuple[Difference, ...]:
    """Differences in the order of the editor's fields; () if the versions are equal."""
    return (*_plan(before, after), *_factors("", before.common, after.common), *_parts(before, after))


def _plan(before: PlanDocument, after: PlanDocument) -> list[Difference]:
    pairs = zip(_rules(before), _rules(after), strict=True)
    return [Difference("", what, old, new) for (what, old), (_, new) in pairs if old != new]


def _rules(document: PlanDocument) -> list[tuple[str, str]]:
    return [
        ("Title", document.title),
        ("Note", document.note),
        ("Repeats", str(document.repeats)),
        ("Required precision", f"±{document.spread_percent} %" if document.spread_percent else "never"),
        ("Minimum repeats", str(document.repeats_min)),
        ("Order", _ORDERS[document.order]),
        ("Slowest factors when listed", ", ".join(map(_label, document.sequence))),
        ("Caches dropped before each trial", "yes" if document.drop_caches else "no"),
        ("New attempts after a lost one", str(document.retries)),
        ("Failure limit", str(document.stop_after) if document.stop_after else "never"),
        ("Order of parts", ", ".join(part.name for part in document.parts)),
    ]


def _factors(where: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Difference]:
    return [
        Difference(where, _label(name), before.get(name, ""), after.get(name, ""))
        for name in by_cost({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _parts(before: PlanDocument, after: PlanDocument) -> list[Difference]:
    old, new = ({part.name: part for part in document.parts} for document in (before, after))
    return [
        difference for name in dict.fromkeys([*old, *new]) for difference in _part(name, old.get(name), new.get(name))
    ]


def _part(name: str, before: Part | None, after: Part | None) -> list[Difference]:
    kinds = [", ".join(part.on) if part else "" for part in (before, after)]
    where = [Difference(name, "Runs on", *kinds)] if kinds[0] != kinds[1] else []
    rules = [" · ".join(part.rules) if part else "" for part in (before, after)]
    where += [Difference(name, "Rules", *rules)] if rules[0] != rules[1] else []
    steps = ["; ".join(part.before) if part else "" for part in (before, after)]
    where += [Difference(name, "Steps before", *steps)] if steps[0] != steps[1] else []
    return where + _factors(name, _all_factors(before), _all_factors(after))


def _all_factors(part: Part | None) -> dict[str, str]:
    """Those of the part and of its streams: `reader.iodepth`."""
    if part is None:
        return {}
    of_streams = {f"{one.name}.{name}": text for one in part.streams for name, text in one.factors.items()}
    return part.factors | of_streams


def _label(factor: str) -> str:
    return FACTORS[factor].label if factor in FACTORS else factor
