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
    """Without the factors that are ignored already or that define a product."""
    points = [list({row.point_key: row.point for row in rows}.values()) for rows in found.values() if rows]
    names = {name for each in points for point in each for name in point}
    defining = {name for product in found for name in product.factors}
    for name in in_order(names - set(ignored) - defining):
        levels = [{repr(point.get(name)): point.get(name) for point in each} for each in points]
        if not set.intersection(*(set(each) for each in levels)):
            texts = iter([_texts(name, list(each.values())) for each in levels])
            yield OwnLevels(
                name, known_dimension(name).label, tuple(next(texts) if rows else "" for rows in found.values())
            )


def _texts(name: str, levels: Sequence[object]) -> str:
    return ", ".join(sorted("not stated" if level is None else FACTORS[name].format(level) for level in levels))
