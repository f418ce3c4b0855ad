"""The products that Bench compares, such as drive models, drives and hosts, and their form in an address.

product=model:SAMSUNG MZQL21T9HCJR&product=host:storage1&baseline=host:storage1
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from webapp.core.errors import Refusal
from webapp.plans.factors import FACTORS, FactorKind
from webapp.results.reading.rows import ResultRow

# The products inside one import: its drives, each layout of a drive that has several, or else its layouts.


def part_names(labels: Iterable[tuple[str, str]]) -> list[str]:
    """`labels`: the drive and the layout of each test. A drive without a layout somewhere is one product."""
    layouts: dict[str, set[str]] = defaultdict(set)
    for drive, layout in labels:
        layouts[drive].add(layout)
    return sorted({name for drive, drive_layouts in layouts.items() for name in _names(drive, drive_layouts)} - {""})


def _names(drive: str, layouts: set[str]) -> set[str]:
    if not drive:
        return layouts
    return {_name(drive, layout) for layout in layouts} if len(layouts) > 1 and "" not in layouts else {drive}


def is_part(row: ResultRow, part: str) -> bool:
    return part == row.target or is_named(part, row.model, row.layout)


def is_named(part: str, drive: str, layout: str) -> bool:
    """Whether a part has this name; a drive without its layout has one too."""
    return part in (drive or layout, _name(drive, layout))


def _name(drive: str, layout: str) -> str:
    return f"{drive}, {layout}"


MAX_PRODUCTS = 8
MAX_VALUE = 300  # characters


class Kind(StrEnum):
    MODEL = "model"
    SERIAL = "serial"
    CONTROLLER = "controller"
    HOST = "host"
    TARGET = "target"
    LAYOUT = "layout"
    CONFIGURATION = "configuration"
    IMPORT = "import"
    RUN = "run"


# Label of one, and of several.
LABELS: dict[Kind, tuple[str, str]] = {
    Kind.MODEL: ("Drive model", "Drive models"),
    Kind.SERIAL: ("Drive", "Drives"),
    Kind.CONTROLLER: ("Controller", "Controllers"),
    Kind.HOST: ("Host", "Hosts"),
    Kind.TARGET: ("Target", "Targets"),
    Kind.LAYOUT: ("Layout", "Layouts"),
    Kind.CONFIGURATION: ("Configuration", "Configurations"),
    Kind.IMPORT: ("Import", "Imports and references"),
    Kind.RUN: ("Run", "Runs"),
}
_OBSERVED = frozenset(
    name for name, factor in FACTORS.items() if factor.kind in (FactorKind.SETTING, FactorKind.LAYOUT)
)
# An import may contain several products: import:3/INTEL D3-S4610 is one of them (ResultRow.target).
_NUMBERED = {
    Kind.RUN: re.compile(r"[0-9]{1,9}", re.ASCII),
    Kind.IMPORT: re.compile(r"[0-9]{1,9}(/.+)?", re.ASCII | re.DOTALL),
}
# Factors that define a product of a kind. They are not part of its workloads.
DEFINED_BY: dict[Kind, frozenset[str]] = {Kind.LAYOUT: frozenset({"layout"}), Kind.CONFIGURATION: _OBSERVED}


class BenchRefused(Refusal):
    """The address of the page cannot be answered."""


@dataclass(frozen=True)
class Product:
    kind: Kind
    value: str

    def __hash__(self) -> int:
        """That of all fields takes long, and each result of a page asks for it several times."""
        return hash(self.value)

    def __str__(self) -> str:
        """As in an address."""
        return f"{self.kind}:{self.value}"

    @property
    def label(self) -> str:
        return LABELS[self.kind][0]

    @property
    def number(self) -> int:
        """Of a run or an import."""
        return int(self.value.partition("/")[0])

    @property
    def part(self) -> str:
        """The name of one product of an import; "" for the whole import."""
        return self.value.partition("/")[2] if self.kind is Kind.IMPORT else ""

    @property
    def factors(self) -> frozenset[str]:
        """The factors that define it."""
        return DEFINED_BY.get(self.kind, frozenset())


def read_products(texts: Iterable[str]) -> tuple[Product, ...]:
    """Each product once, in the order of the address. Raises BenchRefused."""
    products = tuple(dict.fromkeys(_product(text) for text in texts if text.strip()))
    if len(products) > MAX_PRODUCTS:
        message = f"{len(products)} products are too many to read side by side. Choose at most {MAX_PRODUCTS}."
        raise BenchRefused("bench_too_many", message)
    return products


def _product(text: str) -> Product:
    kind, _, value = text.partition(":")
    if kind not in set(Kind):
        raise BenchRefused("bench_kind_unknown", f"product={text}: write kind:name. Kinds are {', '.join(Kind)}.")
    if not value.strip() or len(value) > MAX_VALUE or "\0" in value:
        raise BenchRefused(
            "bench_product_unknown", f"product={text}: there is no {LABELS[Kind(kind)][0].lower()} with this name."
        )
    if kind in _NUMBERED and not _NUMBERED[Kind(kind)].fullmatch(value):
        example = f"{kind}:17"
        message = f"product={text}: write the number of the {LABELS[Kind(kind)][0].lower()}, for example {example}."
        raise BenchRefused("bench_product_unknown", message)
    return Product(Kind(kind), _canonical(value.strip()) if kind in _NUMBERED else value.strip())


def _canonical(value: str) -> str:
    """`01` and `1` are the same run or import."""
    number, slash, part = value.partition("/")
    return f"{int(number)}{slash}{part}"
