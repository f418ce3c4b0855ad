"""What results can be told apart by: every factor, and where, when and in which direction they were measured."""

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.plans.factors import FACTORS, Value

ABSENT = "not set"  # a factor that the point does not have: a setting left as the host had it


@dataclass(frozen=True)
class Row:
    """One result, as far as comparing needs it."""

    value: float
    host: str
    target: str  # host/target
    run: int
    plan: str
    direction: str
    point: Mapping[str, Value]
    facts: str  # digest of its configuration, "" if none was observed
    fio_version: str


@dataclass(frozen=True)
class Level:
    """One value of a dimension. `number` is None where it is no number."""

    key: str  # as it stands in an address
    text: str
    number: float | None

    @property
    def order(self) -> tuple[bool, float, str]:
        return self.number is None, self.number or 0.0, self.text


@dataclass(frozen=True)
class Dimension:
    name: str
    label: str
    numeric: bool = False

    def level(self, row: Row) -> Level:
        plain = str(getattr(row, self.name))
        return Level(plain, f"run {plain}" if self.name == "run" else plain, None)


@dataclass(frozen=True)
class FactorDimension(Dimension):
    def level(self, row: Row) -> Level:
        if self.name not in row.point:
            return Level("", ABSENT, None)
        factor, value = FACTORS[self.name], row.point[self.name]
        return Level(factor.write(value), factor.format(value), _number(value) if factor.numeric else None)


def _number(value: Value) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


_PLACES = (
    Dimension("host", "Host"),
    Dimension("target", "Target"),
    Dimension("run", "Run"),
    Dimension("plan", "Plan"),
    Dimension("direction", "Direction"),
)

DIMENSIONS: Mapping[str, Dimension] = {place.name: place for place in _PLACES} | {
    factor.name: FactorDimension(factor.name, factor.label, factor.numeric) for factor in FACTORS.values()
}
