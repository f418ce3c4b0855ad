"""What a form offers to choose from: selects with one choice, and lists to tick several from.

Lists of hundreds are usual, so their HTML is made here and not in a template, which takes ten times as long.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from django.utils.safestring import SafeString


@lru_cache(maxsize=20_000)
def escaped(text: str) -> str:
    """As HTML, in attributes too. Pages say the same few texts again and again."""
    return escape(text)


@dataclass(frozen=True)
class Option:
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


def option_tags(options: Iterable[Option]) -> SafeString:
    """Of a select."""
    return SafeString(
        "".join(
            f'<option value="{escaped(option.value)}"{" selected" * option.chosen}>{escaped(option.text)}</option>'
            for option in options
        )
    )


def check_boxes(name: str, options: Iterable[Option]) -> SafeString:
    """One for each option, all of one name."""
    box = f'<label class="form-check"><input class="form-check-input" type="checkbox" name="{escaped(name)}"'
    return SafeString(
        "".join(
            f'{box} value="{escaped(option.value)}"{" checked" * option.chosen}>'
            f'<span class="form-check-label">{escaped(option.text)}</span></label>'
            for option in options
        )
    )
