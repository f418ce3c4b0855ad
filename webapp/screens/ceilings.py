"""Ceilings of targets: the lines in charts of bandwidth, and sentences about them."""

from collections.abc import Iterable

from webapp.core import formatting
from webapp.hosts.inventory.ceilings import Bound
from webapp.screens.payloads import ChartCeiling


def drawn(bounds: Iterable[Bound]) -> tuple[ChartCeiling, ...]:
    """Targets with the same bound share a line."""
    alike: dict[float, list[Bound]] = {}
    for bound in bounds:
        alike.setdefault(bound.bytes_per_s, []).append(bound)
    return tuple(_drawn(value, each) for value, each in alike.items())


def _drawn(value: float, alike: list[Bound]) -> ChartCeiling:
    known = alike[0].realistic
    return ChartCeiling(
        text=", ".join(bound.target for bound in alike),
        value=value,
        low=known.low_bytes_per_s if known else None,
        high=known.high_bytes_per_s if known else None,
    )


def in_words(bounds: Iterable[Bound]) -> list[str]:
    """A sentence for each: the limiting link and its practical range."""
    return [_in_words(bound) for bound in bounds]


def _in_words(bound: Bound) -> str:
    said = f"{bound.target} is limited by {bound.words}: {formatting.bytes_per_s(bound.bytes_per_s)} at most"
    if bound.realistic is None:
        return f"{said}."
    low, high = bound.realistic.low_bytes_per_s, bound.realistic.high_bytes_per_s
    return (
        f"{said}, {formatting.bytes_per_s(low)} to {formatting.bytes_per_s(high)} in practice "
        f"({bound.realistic.source})."
    )
