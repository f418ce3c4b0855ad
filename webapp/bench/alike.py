"""Like with like: which values of two products may be compared, and which cells are no number. The one rule of Bench.

A controller or a host is compared with another one over the same drives, and a drive with another one in the same host
at the same controller. So what must be equal besides the workload, its places, is part of the workload: each place has
a row of its own, ratios are formed in each row, and a sentence is about their geometric mean. Products that share no
place share no workload, whatever other products are on the page.

A cell is no number if it is of several drives, layouts or levels of a setting that nobody chose: it says what to
choose. The exception are drives of one model behind a controller or in a host, if both sides have as many of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from webapp.analysis.dimensions import EFFECTS, setting_of
from webapp.analysis.equals import CONTROLLER, DRIVE, HOST, PLACES_OF_DRIVES, PLACES_OF_HOSTS, drive_at, place_of
from webapp.bench.products import Kind, Product
from webapp.plans.factors import FACTORS, FactorKind
from webapp.plans.values import Value
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow, has_several_targets

TARGET = "target"
PLACES = frozenset({HOST, CONTROLLER, DRIVE, TARGET})  # names in the points of workloads, beside factors
_OVER_DRIVES = frozenset({Kind.HOST, Kind.CONTROLLER})
_DRIVES = frozenset({Kind.MODEL, Kind.SERIAL, Kind.TARGET})
OF_TARGETS = frozenset({Kind.RUN, Kind.CONFIGURATION, Kind.LAYOUT})
_LISTED = 3
Rows = Mapping[Product, Sequence[ResultRow]]


class Places:
    """What must be equal besides the workload, by the kind of each product on a page.

    One product has no places, because it is compared with nothing; nor has an import that is a product itself: its
    title says what it is of.
    """

    def __init__(self, rows_by_product: Rows) -> None:
        kinds = {product.kind for product in rows_by_product} if len(rows_by_product) > 1 else set()
        self.by_drive = bool(kinds & _OVER_DRIVES)
        by_host = PLACES_OF_DRIVES if kinds & _DRIVES else ()
        of_runs: tuple[str, ...] = by_host or ((DRIVE,) if self.by_drive else ())
        if not of_runs and kinds and kinds <= OF_TARGETS and any(map(has_several_targets, rows_by_product.values())):
            of_runs = (TARGET,)
        self._names = (
            dict.fromkeys(kinds & _OVER_DRIVES, PLACES_OF_HOSTS)
            | dict.fromkeys(kinds & _DRIVES, by_host)
            | dict.fromkeys(kinds & OF_TARGETS, of_runs)
        )
        self._levels: dict[tuple[Product, int], dict[str, Value]] = {}  # of each result, which is asked several times
        self._drives: dict[tuple[Product, str, str], set[str]] = {}  # alone at one point, by what they are
        for product, rows in rows_by_product.items() if self.by_drive else ():
            for row in rows:
                self._drives.setdefault((product, row.point_key, drive_at(row)), set()).add(row.target_name)

    def of(self, product: Product, row: ResultRow) -> dict[str, Value]:
        """The place of a result, as parts of its point."""
        names = self._names.get(product.kind, ())
        if not names:
            return {}
        levels = self._levels.get((product, row.id))
        if levels is None:
            levels = self._levels[product, row.id] = {name: self._level(name, product, row) for name in names}
        return levels

    def _level(self, name: str, product: Product, row: ResultRow) -> str:
        if name == DRIVE:
            count = len(self._drives[product, row.point_key, drive_at(row)])
            return drive_at(row) if count == 1 else f"{count} × {drive_at(row)}, one at a time"
        return row.target_name if name == TARGET else str(place_of(row, [name])[name])


@dataclass(frozen=True)
class Mixed:
    """A cell that is no number. `choices` are products; or with `factor`, its levels as in an address."""

    words: str  # 2 drives
    choices: tuple[str, ...]
    factor: str = ""

    @property
    def text(self) -> str:
        """In place of the value."""
        names = self.choices if self.factor else [_named(*choice.split(":", 1)) for choice in self.choices]
        return f"{self.words}: choose one of {_list(names)}"


def _named(kind: str, value: str) -> str:
    """A part of an import without the number of the import."""
    return value.partition("/")[2] if kind == Kind.IMPORT else value


def mixed_cell(product: Product, rows: Sequence[ResultRow], ignored: Collection[str], places: Places) -> Mixed | None:
    """None if the rows of a cell are repeats of one value. `ignored`: factors whose levels a person wants together."""
    if product.kind is Kind.IMPORT:
        return mixed_import(product, rows)
    targets = {row.target_name: row for row in rows}
    is_by_drive = product.kind in _OVER_DRIVES and places.by_drive
    if len(targets) > 1 and not is_by_drive:
        return Mixed(f"{len(targets)} drives", tuple(sorted({_target(row) for row in targets.values()})))
    return next(_settings(rows, {*ignored, *product.factors}), None)


def _target(row: ResultRow) -> str:
    return str(Product(Kind.SERIAL, row.serial) if row.serial else Product(Kind.TARGET, row.target_name))


def mixed_import(product: Product, rows: Sequence[ResultRow]) -> Mixed | None:
    """None if these rows of an import are of one drive and layout."""
    parts = _parts(rows)
    if len(parts) > 1:
        words = "layouts" if len({row.model for row in rows}) == 1 else "drives"
        choices = (str(Product(Kind.IMPORT, f"{product.number}/{part}")) for part in sorted(parts - {""}))
        return Mixed(f"{len(parts)} {words}", tuple(choices))
    serials = sorted({row.serial for row in rows} - {""})
    if len(serials) < 2:
        return None
    return Mixed(f"{len(serials)} drives", tuple(str(Product(Kind.SERIAL, serial)) for serial in serials))


def _settings(rows: Sequence[ResultRow], ignored: Collection[str]) -> Iterator[Mixed]:
    """Settings that no plan set and that changed between the results; not those that follow from others."""
    configured = list({(row.configuration, row.stream): row for row in rows if row.configuration}.values())
    if len(configured) < 2:
        return
    names = {setting for row in configured for fact in row.facts if (setting := _setting(fact)) not in ("", *ignored)}
    levels = {name: {level for row in configured if (level := level_of(row, name))} for name in names}
    several = {name: tuple(sorted(texts)) for name, texts in levels.items() if len(texts) > 1}
    causes = {*several, *ignored, *(name for row in configured for name in row.point)}
    following = set[str]().union(*(EFFECTS.get(cause, frozenset()) for cause in causes))
    for name in sorted(several):
        if name not in following and not any(name in row.point for row in configured):
            yield Mixed(f"{len(several[name])} levels of {FACTORS[name].label}", several[name], name)


@lru_cache(maxsize=4_096)  # asked for each fact of each cell
def _setting(fact: str) -> str:
    name = setting_of(fact)
    return name if name in FACTORS and FACTORS[name].kind is FactorKind.SETTING else ""


def level_of(row: ResultRow, factor: str) -> str:
    """The level of a factor as in an address: as the plan set it, or as the worker observed it; "" if unknown."""
    if factor in row.point:
        return FACTORS[factor].values.write(row.point[factor])
    return next((text for fact, text in row.facts.items() if not row.imported and _setting(fact) == factor), "")


def part_of(rows: Iterable[ResultRow]) -> str:
    """The drive and layout that these results of an import are of; "" if they are of several, or if none is stated."""
    parts = _parts(rows)
    return parts.pop() if len(parts) == 1 else ""


def is_of_several(product: Product, rows: Iterable[ResultRow]) -> bool:
    """Whether a whole import has results of several drives or layouts, so that its title does not name one of them."""
    return product.kind is Kind.IMPORT and not product.part and len(_parts(rows)) > 1


def _parts(rows: Iterable[ResultRow]) -> set[str]:
    """As in the address of a part of an import."""
    return {", ".join(filter(None, (row.model, row.layout))) for row in rows}


_RULES = {
    HOST: ("in", "drives are compared only in the same host, at the same controller"),
    CONTROLLER: ("at the controller", "drives are compared only in the same host, at the same controller"),
    DRIVE: ("with", "hosts and controllers are compared only over the same drives, and as many of them"),
    TARGET: ("at", "runs of several targets are compared only at the same ones"),
}


def _stated_places(places: Places, rows_by_product: Rows) -> dict[Product, dict[frozenset[tuple[str, Value]], Point]]:
    """The places of each product, each once."""
    return {
        product: {frozenset(levels.items()): levels for levels in (places.of(product, row) for row in rows)}
        for product, rows in rows_by_product.items()
    }


def share_no_place(places: Places, rows_by_product: Rows) -> bool:
    """Whether all results have places, and the first product has none in common with another one: whatever their
    workloads, no value is compared with one of the first product."""
    first, *others = _stated_places(places, rows_by_product).values()
    are_stated = all(levels for stated in (first, *others) for levels in stated.values())
    return are_stated and all(first.keys().isdisjoint(stated) for stated in others)


def places_words(places: Places, rows_by_product: Rows, names: Mapping[Product, str]) -> str:
    """Why two products with results share no place, in one sentence; "" if they share one or need none."""
    stated = _stated_places(places, rows_by_product)
    first_places, second_places = stated.values()
    if not {name for levels in (*first_places.values(), *second_places.values()) for name in levels}:
        return ""
    if not first_places.keys().isdisjoint(second_places.keys()):
        return ""
    first, second = (names[product] for product in rows_by_product)
    for name, (where, rule) in _RULES.items():
        levels = [{str(place[name]) for place in side.values() if name in place} for side in stated.values()]
        if all(levels) and levels[0].isdisjoint(levels[1]):
            return f"{first} was measured {where} {_list(levels[0])}, and {second} {where} {_list(levels[1])}: {rule}."
    return f"{first} and {second} are not alike: hosts are compared with hosts, and drives with drives at one place."


def _list(texts: Iterable[str]) -> str:
    known = sorted(texts)
    return ", ".join(known[:_LISTED]) + (f" and {len(known) - _LISTED} more" if len(known) > _LISTED else "")
