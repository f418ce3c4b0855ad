"""Why products share no workload: factors of which no two of them have a level in common."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.bench.products import Product
from webapp.bench.workloads import PATTERN
from webapp.compare.dimensions import known_dimension
from webapp.plans.factors import FACTORS
from webapp.plans.varying import in_order
from webapp.results.reading.rows import ResultRow


@dataclass(frozen=True)
class OwnLevels:
    """A factor whose levels differ completely between products, which therefore prevents matches."""

    factor: str
    label: str
    levels: tuple[str, ...]  # texts, by product

    @property
    def ignorable(self) -> bool:
        """Reads and writes are never one workload."""
        return self.factor != PATTERN


def own_levels(found: Mapping[Product, Sequence[ResultRow]], ignored: Collection[str]) -> Iterator[OwnLevels]:
    """Without the factors that are ignored already, that define a product, or that imports do not state."""
    measured = {product: list({row.point_key: row for row in rows}.values()) for product, rows in found.items()}
    names = {name for rows in measured.values() for row in rows for name in row.point}
    imports = {name for rows in measured.values() for row in rows if row.imported for name in row.point}
    defining = {name for product in found for name in product.factors}
    for name in in_order(names - set(ignored) - defining):
        binding = [
            {repr(row.point.get(name)) for row in rows}
            for rows in measured.values()
            if rows and (name in imports or not any(row.imported for row in rows))
        ]
        if len(binding) > 1 and not set.intersection(*binding):
            yield OwnLevels(name, known_dimension(name).label, tuple(_texts(name, rows) for rows in measured.values()))


def _texts(name: str, rows: Sequence[ResultRow]) -> str:
    levels = {repr(level): level for level in (row.point.get(name) for row in rows)}.values()
    return ", ".join(sorted("not stated" if level is None else FACTORS[name].format(level) for level in levels))
