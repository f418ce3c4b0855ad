"""Choices of forms: selects and lists of check boxes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import NamedTuple


@lru_cache(maxsize=20_000)
def escaped(text: str) -> str:
    """As HTML, in attributes too. Pages say the same few texts again and again."""
    return escape(text)


class Option(NamedTuple):
    value: str  # as it stands in the address
    text: str
    chosen: bool


@dataclass(frozen=True)
class Group:
    """Options of a select under one heading; "" for none."""

    label: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Choice:
    """A select. With `nothing` it may be left open."""

    id: str
    name: str
    label: str
    groups: tuple[Group, ...]
    nothing: str = ""


def options_of(pairs: Iterable[tuple[str, str]], *chosen: str) -> tuple[Option, ...]:
    """From value and text."""
    return tuple(Option(value, text, value in chosen) for value, text in pairs)
