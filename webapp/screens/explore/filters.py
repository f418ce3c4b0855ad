"""The filters of a comparison in words, for pages without a filter form."""

from collections.abc import Iterator

from webapp.compare.dimensions import dimension
from webapp.compare.options import Pairs, split
from webapp.compare.query import KEYS
from webapp.results.reading.filter import FACTOR_PREFIX, is_on

_SWITCHES = {"invalid": "invalid results included", "reference": "references included"}


def filters_in_words(pairs: Pairs) -> str:
    """`Run 17, 18 · Block size 4k · references included`, or "none"."""
    return " · ".join(_words(pairs)) or "none"


def _words(pairs: Pairs) -> Iterator[str]:
    given: dict[str, list[str]] = {}
    for key, text in split(pairs)[0]:
        if key not in KEYS and text:
            given.setdefault(key, []).append(text)
    for key, texts in given.items():
        if key not in _SWITCHES:
            yield f"{_label(key.removeprefix(FACTOR_PREFIX))} {', '.join(texts)}"
        elif is_on(given, key):
            yield _SWITCHES[key]


def _label(name: str) -> str:
    known = dimension(name)
    return known.label if known else name.capitalize()
