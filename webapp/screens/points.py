"""Points of a plan in words: `randread · 4 KiB · QD 32`."""

from collections.abc import Iterable, Mapping

from webapp.plans.factors import FACTORS, FactorKind
from webapp.plans.varying import in_order as in_order
from webapp.plans.varying import varying as varying

Point = Mapping[str, object]

# The main factors of a workload, in this order; other factors are shown only if they vary.
_NAMED_BY = ("copy_method", "pattern", "block_size", "numjobs", "iodepth", "ioengine")
_SHORT = {"iodepth": "QD {}", "copy_method": "{} copy"}


def label(factor: str) -> str:
    known = FACTORS.get(factor)
    return known.label if known else factor


def level(factor: str, value: object) -> str:
    """A level in words, with its unit."""
    known = FACTORS.get(factor)
    return known.format(value) if known else str(value)


def levels(point: Point, names: Iterable[str]) -> list[str]:
    """Levels of the named factors; a dash if the point lacks a factor."""
    return [level(name, point[name]) if name in point else "–" for name in names]


def _short(factor: str, value: object) -> str:
    if factor == "numjobs":
        return f"{level(factor, value)} job{'' if value == 1 else 's'}"
    if factor in _NAMED_BY:
        return _SHORT.get(factor, "{}").format(level(factor, value))
    return f"{label(factor)} {level(factor, value)}"  # `none` or `128 KiB` alone would be ambiguous


def in_words(point: Point, names: Iterable[str] = ()) -> str:
    """The named factors of a point in one line; by default the main factors, without a single thread."""
    main = [name for name in _NAMED_BY if not (name == "numjobs" and point.get(name) == 1)]
    named = [name for name in names or main if name in point]
    return " · ".join(_short(name, point[name]) for name in named)


def in_full(point: Point) -> str:
    """The main factors, and everything that does not belong to the workload: settings, layout, purge."""
    others = [name for name, factor in FACTORS.items() if name in point and factor.kind is not FactorKind.WORKLOAD]
    return " · ".join([in_words(point), *(_short(name, point[name]) for name in others)])


def sort_key(value: object) -> tuple[int, float, str]:
    """Sort key: numbers by size, then texts alphabetically."""
    if isinstance(value, bool | int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value)
