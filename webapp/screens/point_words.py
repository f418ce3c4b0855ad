"""Points of a plan in words: `randread · 4 KiB · QD 32`."""

from collections.abc import Iterable, Mapping

from webapp.analysis.dimensions import label_of_fact
from webapp.plans.engines import engine_of
from webapp.plans.factors import BESIDE, FACTORS, STREAM, FactorKind
from webapp.plans.streams import named_levels, names_of, own_point
from webapp.results.reading.filter import FACT_PREFIX

Point = Mapping[str, object]


def label(name: str) -> str:
    """Of a factor, or of a label of an import."""
    known = FACTORS.get(name)
    return known.label if known else label_of_fact(name.removeprefix(FACT_PREFIX))


def level(factor: str, value: object) -> str:
    """A level in words, with its unit."""
    known = FACTORS.get(factor)
    return known.format(value) if known else str(value)


def levels(point: Point, names: Iterable[str]) -> list[str]:
    """Levels of the named factors; a dash if the point lacks a factor."""
    return [level(name, point[name]) if name in point else "–" for name in names]


def in_words(point: Point, names: Iterable[str] = ()) -> str:
    """The given factors of a point in one line; by default the factors in `NAMED_BY` of its engine, of each stream."""
    running = names_of(point)
    if running and not names:
        if STREAM not in point:
            return BESIDE.join(f"{name}: {_main(own_point(point, name))}" for name in running)
        others = [name for name in running if name != point[STREAM]]
        beside = BESIDE.join(f"{name}: {_main(named_levels(point, name))}" for name in others)
        return f"{point[STREAM]}: {_main(point)}" + (f" (beside {beside})" if others else "")
    return _main(point, names)


def _main(point: Point, names: Iterable[str] = ()) -> str:
    texts = engine_of(point).NAMED_BY
    main = [name for name, text in texts.items() if not _is_one(text, point.get(name))]
    named = [name for name in names or main if name in point]
    return " · ".join(_short(name, point[name], texts.get(name)) for name in named)


def _short(factor: str, value: object, text: str | None) -> str:
    """If the engine has no text, the label is shown too: `none` or `128 KiB` alone would be ambiguous."""
    if text is None:
        return f"{label(factor)} {level(factor, value)}"
    return (text.removesuffix("s") if _is_one(text, value) else text).format(level(factor, value))


def _is_one(text: str, value: object) -> bool:
    """Whether the text is a count and its level is 1."""
    return text.endswith("s") and value == 1


def in_full(point: Point) -> str:
    """The main factors, and everything that does not belong to the workload: settings, layout, purge."""
    others = [name for name, factor in FACTORS.items() if name in point and factor.kind is not FactorKind.WORKLOAD]
    return " · ".join([in_words(point), *(_short(name, point[name], None) for name in others)])


def sort_key(value: object) -> tuple[int, float, str]:
    """Sort key: numbers by size, then texts alphabetically."""
    if isinstance(value, bool | int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value)
