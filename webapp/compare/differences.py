"""What differs in a comparison besides the factors that it is about.

Looked at are all factors, host, target, direction and run, and every fact of the configurations that were observed.
Pooled: a cell holds several levels, its mean is over them. Confounded: at the same place two series have different
levels, so the difference between them may be this one's; unless the kernel makes it follow from a setting that is
compared. Along x: neither, but it changes together with x.
Results of several runs in one cell are repeats and not pooled; series from different runs are confounded by that.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from webapp.compare.dimensions import DIMENSIONS, FACT_PREFIX, LABEL, UNKNOWN, Dimension, FactorDimension, Row, label_of
from webapp.compare.facts import IDENTITY, VOLATILE, causes, setting_of
from webapp.compare.grouping import Grouped, Place
from webapp.compare.labels import of_labels
from webapp.compare.query import CompareQuery
from webapp.compare.structs import Difference, DifferenceKind
from webapp.hosts.names import BESIDE, parted
from webapp.plans.factors import AT_ONCE, FACTORS
from webapp.plans.varying import differing

_LISTED = 4
# Told by something else: a target tells its host and drive, a run its plan, a configuration its facts.
# Repeats are what the spread is made of.
_TOLD_OTHERWISE = frozenset({"host", "plan", "model", "serial", "configuration", "repeat", LABEL})
_THE_DEVICE = frozenset({"target", "host", "model", "serial"})


@dataclass(frozen=True)
class _Candidate:
    """Something that may differ: how it is called, and its levels in one row.

    Rows of one `of` have one text: it is worked out once for all of them.
    """

    name: str
    label: str
    text: Callable[[Row], str]
    of: Callable[[Row], Hashable]
    several_are_repeats: bool = False


def _of_point(row: Row) -> Hashable:
    return id(row.point)  # rows of one point share it


def _of_configuration(row: Row) -> Hashable:
    return row.configuration


@dataclass(frozen=True)
class _Held:
    """What can differ, once: a row for each key of `of`, and which keys stand at each place."""

    rows: Mapping[Hashable, Row]
    places: Mapping[Place, frozenset[Hashable]]


class _Holdings:
    """Of grouped results, made for each `of` when it is first asked for."""

    def __init__(self, grouped: Grouped) -> None:
        self.grouped = grouped
        self._held: dict[Callable[[Row], Hashable], _Held] = {}

    def by(self, of: Callable[[Row], Hashable]) -> _Held:
        if of not in self._held:
            rows: dict[Hashable, Row] = {}
            places: dict[Place, frozenset[Hashable]] = {}
            for place, there in self.grouped.cells.items():
                own = {of(row): row for row in there}
                rows |= own
                places[place] = frozenset(own)
            self._held[of] = _Held(rows, places)
        return self._held[of]


def differences(grouped: Grouped, query: CompareQuery) -> tuple[Difference, ...]:
    """Everything that differs; confounding first, then pooling."""
    holdings = _Holdings(grouped)
    found = [one for candidate in _dimensions(query, holdings) for one in _judged(candidate, holdings)]
    found = _of_groups([one for one in found if not _is_told(one, query)], query, holdings)
    found = of_labels([_of_patterns(one, query, holdings.grouped) for one in found], query, holdings.grouped)
    told = {one.name for one in found} | {name.removeprefix(FACT_PREFIX) for name in query.dimensions}
    configured = holdings.by(_of_configuration).rows
    facts = [one for candidate in _facts(told, configured.values()) for one in _judged(candidate, holdings)]
    found += [_following(one, query) for one in _of_configurations(facts, query)]
    order = list(DifferenceKind)
    return tuple(sorted(found, key=lambda one: order.index(one.kind)))


def _dimensions(query: CompareQuery, holdings: _Holdings) -> Iterable[_Candidate]:
    """Places, and the factors that can differ, which the comparison does not name."""
    factors = differing([row.point for row in holdings.by(_of_point).rows.values()])
    for name, dimension in DIMENSIONS.items():
        if name in _TOLD_OTHERWISE or name in query.dimensions or (name in FACTORS and name not in factors):
            continue
        text = _target_alone if name == "target" and "host" in query.dimensions else _level_text(dimension)
        of = _of_point if isinstance(dimension, FactorDimension) else attrgetter(name)
        yield _Candidate(name, dimension.label, text, of, several_are_repeats=name == "run")


def _is_told(one: Difference, query: CompareQuery) -> bool:
    """Different drives are different targets; that several are pooled is still worth saying."""
    drives = {"model", "serial"} & set(query.dimensions)
    return one.name == "target" and bool(drives) and one.kind is not DifferenceKind.POOLED


def _of_groups(found: Sequence[Difference], query: CompareQuery, holdings: _Holdings) -> list[Difference]:
    """Where it is compared how many targets were used at once, that they are others at each level is what is compared:
    as long as the same ones stand at every place, alone or in groups, and all are of one model."""
    if AT_ONCE not in query.dimensions:
        return list(found)
    held = holdings.by(attrgetter("target"))
    members = {frozenset(one for key in keys for one in _members(str(key))) for keys in held.places.values()}
    models = {model for row in held.rows.values() for model in row.model.split(BESIDE)}
    if len(members) != 1 or len(models) > 1:
        return list(found)
    text = f"All levels of {label_of(AT_ONCE)} have the same targets ({_list(members.pop())}), the mean is over groups."
    groups = Difference(kind=DifferenceKind.FOLLOWS, name="target", label=label_of("target"), text=text)
    return list(dict.fromkeys(groups if one.name == "target" else one for one in found))


def _of_patterns(one: Difference, query: CompareQuery, grouped: Grouped) -> Difference:
    """Where patterns are compared, that one reads and the other writes is no second cause: as long as there are the
    same directions of a pattern wherever it stands."""
    if one.name != "direction" or one.kind is not DifferenceKind.CONFOUNDED or "pattern" not in query.series:
        return one
    directions: dict[object, set[frozenset[str]]] = {}
    for there in grouped.cells.values():
        for pattern in {row.point.get("pattern") for row in there}:
            own = frozenset(row.direction for row in there if row.point.get("pattern") == pattern)
            directions.setdefault(pattern, set()).add(own)
    if any(len(sets) > 1 for sets in directions.values()):
        return one
    return _follows(one, f": it follows from {label_of('pattern')}.")


def _follows(one: Difference, why: str) -> Difference:
    """What seemed to confound, and is no second cause."""
    text = one.text.removesuffix(_MAY_BE) + why
    return Difference(kind=DifferenceKind.FOLLOWS, name=one.name, label=one.label, text=text)


def _members(target: str) -> list[str]:
    host, slugs = parted(target)
    return [f"{host}/{slug}" for slug in slugs]


def _level_text(dimension: Dimension) -> Callable[[Row], str]:
    return lambda row: dimension.level(row).text


def _target_alone(row: Row) -> str:
    """Where hosts are compared, targets of one name are the same target."""
    return row.target.partition("/")[2]


def _facts(told: set[str], configured: Iterable[Row]) -> Iterable[_Candidate]:
    """Facts that are not told already: as a factor, or by the device that differs. A row for each configuration."""
    for name in sorted({name for row in configured for name in row.facts}):
        if name in VOLATILE or {name, setting_of(name)} & told or (_THE_DEVICE & told and name in IDENTITY):
            continue
        yield _Candidate(name, name, _fact_text(name), _of_configuration)
    yield _Candidate("fio version", "fio version", lambda row: row.fio_version or UNKNOWN, attrgetter("fio_version"))


def _of_configurations(facts: Sequence[Difference], query: CompareQuery) -> Sequence[Difference]:
    """Where configurations are compared, the one fact that tells them apart is what is compared."""
    confounding = [one for one in facts if one.kind is DifferenceKind.CONFOUNDED]
    if "configuration" not in query.series or len(confounding) != 1:
        return facts
    only = confounding[0]
    told = _follows(only, ": the only fact that tells the configurations apart.")
    return [told if one is only else one for one in facts]


def _following(one: Difference, query: CompareQuery) -> Difference:
    """A confounding fact that the kernel makes follow from a compared setting is no second cause."""
    reasons = causes(one.name, query.dimensions) if one.kind is DifferenceKind.CONFOUNDED else []
    if not reasons:
        return one
    return _follows(one, f"; the kernel sets it along with {' and '.join(reasons)}.")


def _fact_text(name: str) -> Callable[[Row], str]:
    return lambda row: row.facts.get(name, UNKNOWN)


def _judged(candidate: _Candidate, holdings: _Holdings) -> list[Difference]:
    held = holdings.by(candidate.of)
    texts = {key: candidate.text(row) for key, row in held.rows.items()}
    if len(set(texts.values())) < 2:
        return []
    seen = {place: frozenset(map(texts.__getitem__, keys)) for place, keys in held.places.items()}
    found = []
    if series := _confounded(seen, candidate.several_are_repeats):
        found.append(_difference(DifferenceKind.CONFOUNDED, candidate, _per_series(series, holdings.grouped)))
    pooled = {text for texts in seen.values() if len(texts) > 1 for text in texts}
    if pooled and not candidate.several_are_repeats:
        found.append(_difference(DifferenceKind.POOLED, candidate, _list(pooled)))
    if not found and not candidate.several_are_repeats and _along_x(seen):
        found.append(
            _difference(DifferenceKind.ALONG_X, candidate, _list({t for texts in seen.values() for t in texts}))
        )
    return found


def _confounded(seen: Mapping[Place, frozenset[str]], disjoint: bool) -> dict[str, frozenset[str]]:
    """Series key -> levels, of the first place at which two series differ; empty if there is none.

    With `disjoint` levels that overlap are no difference.
    """
    places: dict[tuple[str, str], dict[str, frozenset[str]]] = {}
    for (panel, series, x), texts in seen.items():
        places.setdefault((panel, x), {})[series] = texts
    for levels in places.values():
        first = next(iter(levels.values()))
        if any(not (first & texts) if disjoint else first != texts for texts in levels.values()):
            return levels
    return {}


def _along_x(seen: Mapping[Place, frozenset[str]]) -> bool:
    """It changes between places of one series in one chart."""
    charts: dict[tuple[str, str], set[frozenset[str]]] = {}
    for (panel, series, _), texts in seen.items():
        charts.setdefault((panel, series), set()).add(texts)
    return any(len(texts) > 1 for texts in charts.values())


def _per_series(levels: Mapping[str, frozenset[str]], grouped: Grouped) -> str:
    said = [f"{series.text}: {_list(levels[series.key])}" for series in grouped.series if series.key in levels]
    return "; ".join(said[:_LISTED]) + (" …" if len(said) > _LISTED else "")


def _list(texts: Iterable[str]) -> str:
    known = sorted(texts, key=lambda text: (len(text), text))
    return ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")


_MAY_BE = ", so it may be what makes the difference."
_SENTENCES = {
    DifferenceKind.CONFOUNDED: "{label} differs between series ({levels})" + _MAY_BE,
    DifferenceKind.POOLED: "{label} takes several levels in one point ({levels}); the mean is over all of them.",
    DifferenceKind.ALONG_X: "{label} changes along x as well ({levels}).",
}


def _difference(kind: DifferenceKind, candidate: _Candidate, levels: str) -> Difference:
    text = _SENTENCES[kind].format(label=candidate.label, levels=levels)
    return Difference(kind=kind, name=candidate.name, label=candidate.label, text=text)


def verdict(query: CompareQuery, found: Sequence[Difference], *, series: int) -> tuple[bool, str]:
    """Whether the series differ in one factor only, and that in words."""
    confounding = [one.label for one in found if one.kind is DifferenceKind.CONFOUNDED]
    pooled = [one.label for one in found if one.kind is DifferenceKind.POOLED and one.label not in confounding]
    if series < 2:
        return not pooled, "One series: nothing is compared." if not pooled else f"Pooled over {_list(pooled)}."
    by = " and ".join(label_of(name) for name in query.series)
    if confounding:
        return False, f"Confounded by {', '.join(confounding)}."
    if len(query.series) > 1:
        return False, f"Series differ in {by} together."
    if pooled:
        return False, f"Series differ in {by} alone; pooled over {', '.join(pooled)}."
    return True, f"Single-factor: series differ in {by} alone."
