"""Choices of forms: selects and lists of check boxes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Option(NamedTuple):
    value: str  # the value in the address
    text: str
    chosen: bool


@dataclass(frozen=True)
class Group:
    """Options of a select under one heading; "" for none."""

    label: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Choice:
    """A select. With `nothing`, it has an empty option with this text."""

    id: str
    name: str
    label: str
    groups: tuple[Group, ...]
    nothing: str = ""


def options_of(pairs: Iterable[tuple[str, str]], *chosen: str) -> tuple[Option, ...]:
    """Options from pairs of value and text."""
    return tuple(Option(value, text, value in chosen) for value, text in pairs)
