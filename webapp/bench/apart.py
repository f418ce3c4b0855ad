"""Why products share no workload: factors of which no two of them have a level in common."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.bench.import_labels import factor_words, level_text, points_with_labels, varying_labels
from webapp.bench.products import Product
from webapp.bench.workloads import PATTERN
from webapp.plans.varying import in_order
from webapp.results.reading.content import Point
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
    labels = varying_labels(row for rows in found.values() for row in rows)
    measured = {product: points_with_labels(rows, labels) for product, rows in found.items()}
    names = {name for points in measured.values() for point in points for name in point}
    imports = {product for product, rows in found.items() if any(row.imported for row in rows)}
    stated = {name for product in imports for point in measured[product] for name in point}
    defining = {name for product in found for name in product.factors}
    for name in in_order(names - set(ignored) - defining):
        binding = [
            {repr(point.get(name)) for point in points}
            for product, points in measured.items()
            if points and (name in stated or product not in imports)
        ]
        if len(binding) > 1 and not set.intersection(*binding):
            yield OwnLevels(name, factor_words(name), tuple(_texts(name, points) for points in measured.values()))


def _texts(name: str, points: Iterable[Point]) -> str:
    levels = {repr(level): level for level in (point.get(name) for point in points)}.values()
    return ", ".join(sorted("not stated" if level is None else level_text(name, level) for level in levels))
