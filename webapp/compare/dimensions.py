"""What results can be told apart by: every factor, where, when and in which direction they were measured,
the configuration that was observed, and each fact of it (`fact.device.firmware`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from webapp.hosts.names import NO_LABEL
from webapp.plans.factors import FACTORS, Value
from webapp.results.filters import NOT_SET

UNKNOWN = "unknown"
LABEL = "label"
FACT_PREFIX = "fact."
DIGEST_SHOWN = 10  # characters of a configuration's digest, as in an address


class Row(msgspec.Struct, frozen=True, gc=False):
    """One result, as far as comparing needs it, or the total of a trial's directions (`compare.mixes`)."""

    id: int
    value: float
    host: str
    target: str  # host/target
    model: str  # of the drive, "" where none is known
    serial: str
    run: int
    trial: int  # number in its run
    plan: str
    direction: str  # of a total "read + write"
    repeat: int
    point: Mapping[str, Value]
    configuration: str  # digest, "" if none was observed
    fio_version: str
    invalid: str = ""  # why it is not to be trusted
    label: str = ""  # of the host in its group
    facts: Mapping[str, str] = msgspec.field(default_factory=dict)  # of the configuration, `compare.facts.normalised`
    further: tuple[int, ...] = ()  # ids of the other results in a total

    @property
    def drive_state(self) -> str:
        """What the drive held before the stream began, as its worker knew."""
        return self.facts.get("drive_state", "")


class Level(msgspec.Struct, frozen=True, gc=False):
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
        return Level(plain, plain or UNKNOWN, None)


@dataclass(frozen=True)
class NumberDimension(Dimension):
    """Named by a number: `run 17`."""

    word: str = ""

    def level(self, row: Row) -> Level:
        number: int = getattr(row, self.name)
        return Level(str(number), f"{self.word} {number}", None)


@dataclass(frozen=True)
class DriveDimension(Dimension):
    """A drive is its serial; the model is said too. Where no serial is known the target stands for it."""

    def level(self, row: Row) -> Level:
        if not row.serial:
            return Level(row.target, f"{row.target} (no serial)", None)
        return Level(row.serial, f"{row.model} {row.serial}".strip(), None)


@dataclass(frozen=True)
class LabelDimension(Dimension):
    """What a host is called in its group. A result that was not measured for a group has none."""

    def level(self, row: Row) -> Level:
        return Level(row.label or NO_LABEL, row.label or NO_LABEL, None)


@dataclass(frozen=True)
class ConfigurationDimension(Dimension):
    def level(self, row: Row) -> Level:
        short = row.configuration[:DIGEST_SHOWN]
        return Level(short, f"configuration {short}" if short else "none observed", None)


# A factor that the point does not have: a setting left as the host had it.
_ABSENT_LEVEL = Level(NOT_SET.value, NOT_SET.value, None)


@lru_cache(maxsize=10_000, typed=True)
def _level(name: str, value: Value) -> Level:
    """Of a factor. Thousands of rows have the same few, so each is written once."""
    factor = FACTORS[name]
    return Level(factor.write(value), factor.format(value), _number(value) if factor.numeric else None)


@dataclass(frozen=True)
class FactorDimension(Dimension):
    def level(self, row: Row) -> Level:
        return _level(self.name, row.point[self.name]) if self.name in row.point else _ABSENT_LEVEL


@dataclass(frozen=True)
class FactDimension(Dimension):
    """A fact of the configuration as observed."""

    def level(self, row: Row) -> Level:
        text = row.facts.get(self.name.removeprefix(FACT_PREFIX), "")
        return Level(text, text or UNKNOWN, None)


def _number(value: Value) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


_PLACES = (
    Dimension("host", "Host"),
    Dimension("target", "Target"),
    Dimension("model", "Drive model"),
    DriveDimension("serial", "Drive"),
    Dimension("drive_state", "Drive state"),
    NumberDimension("run", "Run", word="run"),
    Dimension("plan", "Plan"),
    LabelDimension(LABEL, "Label"),
    Dimension("direction", "Direction"),
    NumberDimension("repeat", "Repeat", word="repeat"),
    ConfigurationDimension("configuration", "Configuration"),
)
PLACES: tuple[str, ...] = tuple(place.name for place in _PLACES)

DIMENSIONS: Mapping[str, Dimension] = {place.name: place for place in _PLACES} | {
    factor.name: FactorDimension(factor.name, factor.label, factor.numeric) for factor in FACTORS.values()
}


def dimension(name: str) -> Dimension | None:
    """The dimension of this name; None where there is none."""
    if name.startswith(FACT_PREFIX) and len(name) > len(FACT_PREFIX):
        return FactDimension(name, name.removeprefix(FACT_PREFIX))
    return DIMENSIONS.get(name)


def known_dimension(name: str) -> Dimension:
    """The dimension of a name that was checked. Raises LookupError."""
    found = dimension(name)
    if found is None:
        raise LookupError(name)
    return found


def label_of(name: str) -> str:
    return known_dimension(name).label
